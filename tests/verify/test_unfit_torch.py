"""A torch that cannot be measured is refused with the reason: 2.1 makes a new object for a storage at each access, so
that storages cannot be followed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from memlint.measure.session.environment import why_not


class _Storage: ...


def _torch(*, same: bool, cuda: bool) -> SimpleNamespace:
    kept = _Storage()
    tensor = SimpleNamespace(untyped_storage=lambda: kept if same else _Storage())
    return SimpleNamespace(__version__="2.x", empty=lambda _: tensor, cuda=SimpleNamespace(is_available=lambda: cuda))


@pytest.mark.parametrize(
    ("same", "cuda", "device", "said"),
    [
        (True, False, "cpu", None),
        (True, False, "auto", None),
        (True, True, "cuda", None),
        (True, False, "cuda", "no CUDA device"),
        (False, False, "cpu", "2.2 or newer"),
        (False, True, "auto", "2.2 or newer"),
    ],
)
def test_why_a_torch_cannot_be_measured(same: bool, cuda: bool, device: str, said: str | None) -> None:
    reason = why_not(_torch(same=same, cuda=cuda), device)
    assert reason is None if said is None else said in (reason or "")
