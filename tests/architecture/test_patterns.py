from __future__ import annotations

import copy
import importlib
import pickle
import re
import sys

import pytest
from test_walls import PACKAGE, modules

from memlint.engine.rules.rooms import detectors_of, load_rooms
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


def test_every_pattern_of_the_package_and_of_the_rules_compiles():
    for path in modules():
        if "lazy_pattern(" in path.read_text("utf-8") and path.name != "patterns.py":
            importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    rooms = load_rooms()
    packages = ("memlint.", *(one.package for one in detectors_of(rooms, rooms.keys())))
    own = [vars(module) for name, module in list(sys.modules.items()) if name.startswith(packages)]
    found = {id(value): value for names in own for value in names.values() if isinstance(value, _Lazy)}
    assert all(isinstance(value.pattern, (str, bytes)) for value in found.values())
    assert len(found) > 200
