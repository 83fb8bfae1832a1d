"""Verification of findings: runs the user's program with probes, and judges each finding by the measurements."""
