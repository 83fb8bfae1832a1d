from __future__ import annotations

import copy
import importlib
import pickle
import re

import pytest
from test_walls import PACKAGE, modules

from memlint.patterns import _Lazy, lazy_pattern


def test_a_lazy_pattern_does_what_the_compiled_one_does():
    lazy = lazy_pattern(r"(\w)=", re.IGNORECASE)
    real = re.compile(r"(\w)=", re.IGNORECASE)
    assert lazy.findall("a=b=") == real.findall("a=b=") == ["a", "b"]
    assert (lazy.sub("", "a=1"), lazy.pattern, lazy.flags) == ("1", real.pattern, real.flags)
    assert lazy.match("=") is None and lazy.fullmatch("a=")[1] == "a"
    assert pickle.loads(pickle.dumps(lazy)).search("a=")[1] == copy.deepcopy(lazy).search("b=a=")[1].replace("b", "a")


def test_a_wrong_expression_is_an_error_when_it_is_used():
    wrong = lazy_pattern("(")
    with pytest.raises(re.error):
        wrong.match("")


def test_every_pattern_of_the_package_compiles():
    found = 0
    for path in modules():
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if "lazy_pattern(" not in path.read_text("utf-8") or path.name == "patterns.py":
            continue
        for value in vars(importlib.import_module(".".join(parts))).values():
            if isinstance(value, _Lazy):
                assert isinstance(value.pattern, (str, bytes))
                found += 1
    assert found > 150
