"""What a name says: whether a function is a test or an evaluation (its file counts too), and a callable a model."""

from __future__ import annotations

from memlint.analysis.index.program import Function, in_tests
from memlint.patterns import lazy_pattern

#: words in the names of evaluations
_NAMES = (
    "valid", "eval", "test", "predict", "infer", "generate", "sample", "extract", "encode_all", "embed_all",
    "export", "inference",
)  # fmt: skip

#: names of models
_MODEL = lazy_pattern(
    r"_?(.*_)?(model|net|network|encoder|decoder|backbone|generator|extractor|classifier|student|teacher|vae|unet|vit|resnet|gan)\d?"
)

_ENVIRONMENT = lazy_pattern(r"([a-z]\w*_)?(v?envs?|environment|gym)(_\w+)?")


def names_environment(name: str) -> bool:
    """Whether a name is that of an environment of reinforcement learning, or of several: ``env_encoder`` is none."""
    name = name.lower()
    return _ENVIRONMENT.fullmatch(name) is not None and _MODEL.fullmatch(name) is None


def names_model(shown: str) -> bool:
    """Whether a callable is named like a model. What runs on a batch under no_grad with such a name is one."""
    return _MODEL.fullmatch(shown.rsplit(".", 1)[-1].lower()) is not None


def named_test(function: Function) -> bool:
    named = function.name.startswith("test_") and (in_tests(function.module.key) or not _requires_arguments(function))
    return named or _is_test_file(function, "test_")


def _is_test_file(function: Function, *names: str) -> bool:
    """Whether a file has a test's name and contains a test: ``test_kitti.py`` may also evaluate a trained model."""
    name = function.module.key.rsplit("/", 1)[-1].removesuffix(".py")
    return any(name.startswith(one) or name.endswith(one) for one in names) and any(
        unit.name.startswith(("test_", "Test")) or unit.name.endswith(("Test", "TestCase"))
        for unit in function.module.index.units
    )


def is_test(function: Function, *, by_name: bool = True) -> bool:
    """Whether a function is a test or a helper of tests. ``by_name``: a test's name counts; that of a framework's hook
    (``test_step``) must not."""
    return (
        (named_test(function) if by_name else _is_test_file(function, "test_"))
        or _is_test_file(function, "_test")
        or in_tests(function.module.key)
        or (function.around is not None and is_test(function.around))
    )


def _requires_arguments(function: Function) -> bool:
    """Whether a function has required parameters (``def test_epoch(model, loader)``) in a file where a test runner
    collects no tests: the program calls it with a trained model."""
    name = function.module.key.rsplit("/", 1)[-1].removesuffix(".py")
    if name.startswith("test_") or name.endswith("_test") or name == "conftest":
        return False
    return any(param.default is None and "star" not in param.kind for param in function.given)


def is_evaluation_name(function: Function) -> bool:
    """Whether a function is named as evaluations are."""
    name = function.name.lower().lstrip("_")
    if "rsample" in name:
        return False  # reparameterised samples are differentiable
    return any(name.startswith(word) or f"_{word}" in name for word in _NAMES)
