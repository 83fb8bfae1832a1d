"""memlint finds the places in PyTorch code that waste or leak memory.

The public API is `lint`, `apply_fixes`, `verify` and what they give; all are imported on first use, so
``import memlint`` costs nothing.
"""

# nothing is imported here: `python -m memlint` would take it from the working directory, which is the linted project's
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memlint.engine.api import apply_fixes, lint
    from memlint.finding import Failure, Finding, FixResult, Refusal, Result
    from memlint.verifier.within import Verification, verify

__version__ = "0.1.0"

__all__ = [
    "Failure",
    "Finding",
    "FixResult",
    "Refusal",
    "Result",
    "Verification",
    "__version__",
    "apply_fixes",
    "lint",
    "verify",
]


def __getattr__(name: str) -> "Any":
    if name in {"apply_fixes", "lint"}:
        from memlint.engine import api

        return getattr(api, name)
    if name in {"Verification", "verify"}:
        from memlint.verifier import within

        return getattr(within, name)
    if name == "load_ipython_extension":  # by `%load_ext memlint`
        from memlint.plugins import ipython

        return ipython.load
    if name in {"Failure", "Finding", "FixResult", "Refusal", "Result"}:
        from memlint import finding

        return getattr(finding, name)
    raise AttributeError(f"module 'memlint' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
