"""What a function is for, by its name and place: a test, an evaluation."""

from __future__ import annotations

from memlint.analysis.index.program import Function, in_tests

#: parts of the names of evaluations
_NAMES = (
    "valid",
    "eval",
    "test",
    "predict",
    "infer",
    "generate",
    "sample",
    "extract",
    "encode_all",
    "embed_all",
    "export",
    "inference",
)


def named_test(function: Function) -> bool:
    named = function.name.startswith("test_") and (in_tests(function.module.key) or not _is_given(function))
    return named or _is_test_file(function, "test_")


def _is_test_file(function: Function, *names: str) -> bool:
    """Whether a file is named as tests are, and holds one: ``test_kitti.py`` may as well test a trained model."""
    name = function.module.key.rsplit("/", 1)[-1].removesuffix(".py")
    return any(name.startswith(one) or name.endswith(one) for one in names) and any(
        unit.name.startswith(("test_", "Test")) or unit.name.endswith(("Test", "TestCase"))
        for unit in function.module.index.units
    )


def is_test(function: Function, *, by_name: bool = True) -> bool:
    """Code of a test, or that helps tests. ``by_name``: its name tells as well, as it does not of a framework's hooks
    (``test_step``)."""
    return (
        (named_test(function) if by_name else _is_test_file(function, "test_"))
        or _is_test_file(function, "_test")
        or in_tests(function.module.key)
        or (function.around is not None and is_test(function.around))
    )


def _is_given(function: Function) -> bool:
    """``def test_epoch(model, loader)``, in a file where no test runner looks for tests: the program calls it, with
    what it has trained."""
    name = function.module.key.rsplit("/", 1)[-1].removesuffix(".py")
    if name.startswith("test_") or name.endswith("_test") or name == "conftest":
        return False
    return any(param.default is None and "star" not in param.kind for param in function.given)


def is_evaluation_name(function: Function) -> bool:
    """Whether a function is named as evaluations are."""
    name = function.name.lower().lstrip("_")
    if "rsample" in name:
        return False  # (samples that are drawn so that they can be differentiated)
    return any(name.startswith(word) or f"_{word}" in name for word in _NAMES)
