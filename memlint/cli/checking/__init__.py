"""The parts of ``memlint check`` besides one run and its report: fixes, baselines, suppressions, watching."""
