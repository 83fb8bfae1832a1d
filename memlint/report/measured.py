"""The measurement of a finding in words."""

from __future__ import annotations

from memlint.finding import Evidence, PerIteration


def said(evidence: Evidence) -> str:
    """For example ``16,388 B an iteration on cuda:0``; a measurement without bytes gives its verdict and reason."""
    if evidence.verdict == "confirmed" and evidence.bytes_per_iteration is not None:
        return f"{count(evidence.bytes_per_iteration)} an iteration on {evidence.device}"
    if evidence.verdict == "confirmed-host":
        parts = [
            *([f"{evidence.graph_nodes_per_iteration:,} graph nodes"] if evidence.graph_nodes_per_iteration else []),
            *([f"{evidence.host_bytes_per_iteration:,} B of host memory"] if _grows(evidence) else []),
        ]
        if parts:
            return f"{' and '.join(parts)} an iteration"
    return f"{evidence.verdict}: {evidence.reason}"


def count(per: PerIteration) -> str:
    """The bytes if all iterations are equal, else their mean and range."""
    if per.exact is not None:
        return f"{per.exact:,} B"
    return f"{per.mean:,} B ({per.min:,} to {per.max:,} B)"


def _grows(evidence: Evidence) -> bool:
    return evidence.host_bytes_per_iteration is not None and evidence.host_bytes_per_iteration > 0
