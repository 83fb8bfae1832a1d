"""What ``memlint check`` does besides one run and its report: fixes, baselines, suppressions, files that change."""
