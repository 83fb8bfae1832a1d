"""Whether an edited text is still a program."""

from __future__ import annotations

import pytest

from memlint.fix.names import unbound
from memlint.fix.text import harm


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b as c, d.e\nc, d, e, a\n", {"a", "e"}),
        ("def f(x, *y, **z):\n    global g\n    g = w = x, y, z\n    return g, w, h\n", {"h"}),
        ("class A:\n    p = 1\n    def f(self):\n        return p, A, __class__\n", {"p"}),
        ("for i in range(3): print(i, j)\n", {"j"}),
        ("[k for k in x if (m := k)]; m, k\n", {"x", "k"}),
        ("from lib import *\nnew\n", {"new"}),
        ("try: ...\nexcept E as e: e\nwith o as p: p\ndel p\n", {"E", "o"}),
        ("x: int\nx\ndef f(): nonlocal_ = 1; return lambda: (nonlocal_, y)\n", {"y"}),
        ("__name__, __file__, __doc__, len\n", set()),
        ("x += 1\n", set()),
    ],
)
def test_names_that_are_bound_nowhere(text: str, expected: set[str]) -> None:
    assert unbound(text) == expected


def test_names_that_were_unbound_before_do_not_count() -> None:
    assert harm("from lib import *\ntorch\n", "from lib import *\ntorch.x\n") is None
    assert harm("from lib import *\n", "from lib import *\ntorch.x\n") == "`torch` would be undefined"
    assert harm("import torch\ntorch\n", "torch\n") == "`torch` would be undefined"


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("import torch\nfrom __future__ import annotations\n", "would no longer compile"),
        ("from __future__ import annotations\nbreak\n", "would no longer compile"),
        ("from __future__ import annotations\nx = 1\n  y = 2\n", "would no longer compile"),
        ("from __future__ import annotations\nimport torch\n", None),
    ],
)
def test_what_compiled_must_compile(after: str, said: str | None) -> None:
    found = harm("from __future__ import annotations\n", after)
    assert found == said if said is None else said in (found or "")


#: nothing that this Python compiles, and libcst reads
FOREIGN = "return 1\n"


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("return 1 +\n", "the file would no longer compile"),
        ("return torch.x\n", "`torch` would be undefined"),
        ("import torch\nreturn torch.x\n", None),
        ("import torch.nn as t\nreturn t.no_grad(requires=len)\n", None),
        ("for i, (j, k) in x: i, j, k, m\nreturn 1\n", "`m` and `x` would be undefined"),
        ("with open() as f, (g := 1): return f, g\n", None),
        ("[a, b] = c = 1\nreturn a, b, c\n", None),
    ],
)
def test_what_the_host_cannot_read_must_parse_elsewhere(after: str, said: str | None) -> None:
    found = harm(FOREIGN, after)
    assert found == said if said is None else (found or "").startswith(said)


def test_what_did_not_parse_is_not_fixed() -> None:
    assert harm("def (:\n", "x = 1\n") == "the file does not parse"
