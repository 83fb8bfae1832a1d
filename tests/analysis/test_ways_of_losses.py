"""The many ways in which a loss comes out of a model, and the many places that keep one: each is seen.

``fixtures/ways`` holds them, one a section: of losses.txt what is defined before (if anything) and what makes ``v`` of
``model``, ``x`` and ``y``; of the others what is defined, what is made before the loop, what keeps ``loss`` in each
round, and what comes after (if anything).
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import memlint

FOLDER = Path(__file__).parents[2] / "fixtures/ways"


def sections(name: str) -> dict[str, list[str]]:
    """The parts of each section of a file, by its name."""
    found = {}
    for section in f"\n{(FOLDER / name).read_text('utf-8')}".split("\n== ")[1:]:
        title, _, text = section.partition("\n")
        found[title] = [part.strip("\n") for part in f"\n{text}".split("\n--")]
    return found


def evaluation(parts: list[str]) -> str:
    before, body = parts if len(parts) == 2 else ("", parts[0])
    return f"""import torch
from torch import nn
import torch.nn.functional as F
{before}

def validate(model, loader, kind, name, w, xl, yl):
    crit = nn.CrossEntropyLoss()
    total = 0.0
    model.eval()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
{textwrap.indent(body, " " * 8)}
        total += v
    print(total / len(loader))
"""


def training(parts: list[str]) -> str:
    defined, before, body, after = (*parts, "", "")[:4]
    return f"""import torch
from torch import nn
{defined}

def train(model, loader, optimizer):
    crit = nn.CrossEntropyLoss()
    model.train()
{textwrap.indent(before, " " * 4)}
    for i, (x, y) in enumerate(loader):
        x, y = x.cuda(), y.cuda()
        loss = crit(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{textwrap.indent(body, " " * 8)}
{textwrap.indent(after, " " * 4)}
"""


WAYS = {f"losses_{name}": evaluation(parts) for name, parts in sections("losses.txt").items()}
NO_WAYS = {f"no_losses_{name}": evaluation(parts) for name, parts in sections("no_losses.txt").items()}
PLACES = {f"places_{name}": training(parts) for name, parts in sections("places.txt").items()}
NO_PLACES = {f"no_places_{name}": training(parts) for name, parts in sections("no_places.txt").items()}


#: the code and the severity of a finding
Found = dict[str, set[tuple[str, str]]]
#: ways by which the state is rebuilt as a whole, as a recurrent one is that other code may detach
ONLY_NOTED = {"places_sums_by_accumulate", "places_dict_rebuilt_with_a_concatenation"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    folder = tmp_path_factory.mktemp("ways")
    for name, text in {**WAYS, **NO_WAYS, **PLACES, **NO_PLACES}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    found: Found = {}
    for one in result.findings:
        found.setdefault(Path(one.path).stem, set()).add((one.code, one.severity))
    return found


@pytest.mark.parametrize("way", [*WAYS, *PLACES])
def test_an_attached_loss_that_is_kept_is_seen(found: Found, way: str) -> None:
    kept = {(code, level) for code, level in found.get(way, set()) if code in {"MEM101", "MEM102", "MEM103", "MEM302"}}
    assert kept
    assert {level for _, level in kept} != {"note"} or way in ONLY_NOTED


@pytest.mark.parametrize("way", [*NO_WAYS, *NO_PLACES])
def test_what_keeps_no_graph_is_left_alone(found: Found, way: str) -> None:
    assert not {code for code, _ in found.get(way, set())} & {"MEM101", "MEM102", "MEM103"}
