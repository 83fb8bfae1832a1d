"""What keeps the batches of a data loader, and what goes through something else, or through few of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

PROGRAM = """
import itertools
import itertools as it
from itertools import cycle, islice, tee
from itertools import cycle as forever

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
from tqdm import tqdm
from library import consume, make


class Own(DataLoader):
    pass


class Stream(IterableDataset):
    def __iter__(self):
        yield make()


class Held(Dataset):
    def __getitem__(self, index):
        return self.samples[index]


class Trainer:
    def __init__(self, data):
        self.batches = DataLoader(data, batch_size=8)
        self.many = [self.batches]


def loaders(data):
    return {{"train": DataLoader(data), "test": DataLoader(data)}}


def build(data):
    return DataLoader(data, shuffle=True)


def train(model, optimizer, data, train_loader, settings, {name}=None):
    loader = DataLoader(data, batch_size=8)
    trainer = Trainer(data)
    {body}
    for x in data:
        optimizer.zero_grad()
        model(x.cuda()).sum().backward()
        optimizer.step()
"""


def found(tmp_path: Path, *body: str, name: str = "other") -> list[Finding]:
    (tmp_path / "program.py").write_text(PROGRAM.format(body="\n    ".join(body), name=name))
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    return [each for each in result.findings if each.code == "MEM107"]


@pytest.mark.parametrize(
    ("expression", "severity", "confidence"),
    [
        ("itertools.cycle(loader)", "warning", "high"),
        ("it.cycle(loader)", "warning", "high"),
        ("cycle(loader)", "warning", "high"),
        ("forever(iter(loader))", "warning", "high"),
        ("iter(cycle(loader))", "warning", "high"),
        ("cycle(enumerate(loader))", "warning", "high"),
        ("cycle(tqdm(loader))", "warning", "high"),
        ("cycle(zip(loader, data))", "warning", "high"),
        ("cycle(DataLoader(data))", "warning", "high"),
        ("cycle(build(data))", "warning", "high"),
        ("cycle(loaders(data)['train'])", "warning", "high"),
        ("cycle(trainer.batches)", "warning", "high"),
        ("cycle(Own(data))", "warning", "high"),
        ("zip(cycle(loader), data)", "warning", "high"),
        ("zip(range(settings.steps), cycle(loader))", "warning", "high"),
        ("cycle(Stream())", "warning", "medium"),
        ("cycle(train_loader)", "warning", "medium"),
        ("cycle(settings.train_dataloader)", "warning", "medium"),
        ("cycle(settings.get_loader('train'))", "warning", "medium"),
        ("list(loader)", "note", "high"),
        ("tuple(enumerate(loader))", "note", "high"),
        ("list(loader)[0]", "note", "high"),
    ],
)
def test_what_keeps_batches(tmp_path: Path, expression: str, severity: str, confidence: str) -> None:
    (each,) = found(tmp_path, f"consume({expression})")
    assert (each.severity, each.confidence) == (severity, confidence)


@pytest.mark.parametrize(
    "expression",
    [
        "cycle(data)",
        "cycle(Held())",
        "list(Stream())",
        "cycle([1, 2, 3])",
        "cycle(model.parameters())",
        "cycle(trainer.many)",
        "cycle(settings.loaders)",
        "cycle(settings.loader_names)",
        "cycle(settings.downloader)",
        "cycle(range(settings.steps))",
        "settings.cycle(loader)",
        "next(cycle(loader))",
        "next(iter(cycle(loader)))",
        "zip(range(4), cycle(loader))",
        "zip(range(settings.inner_steps), cycle(loader))",
        "zip(['a', 'b'], cycle(loader))",
        "islice(cycle(loader), 3)",
        "list(islice(loader, settings.steps))",
        "list(zip(range(settings.steps), loader))",
        "list(train_loader)",
        "list(loader.dataset)",
        "list(loader.batch_sampler)",
        "list(loaders(data))",
        "list(map(len, [loader]))",
        "len(loader)",
        "itertools.chain.from_iterable(itertools.repeat(loader))",
    ],
)
def test_what_keeps_none(tmp_path: Path, expression: str) -> None:
    assert found(tmp_path, f"consume({expression})") == []


@pytest.mark.parametrize(
    "own",
    [
        "def cycle(loader):\n    while True:\n        yield from loader\n",
        "from library import cycle\n",
        "from .tools import cycle\n",
    ],
)
def test_a_cycle_of_the_programs_own(tmp_path: Path, own: str) -> None:
    code = (
        "from torch.utils.data import DataLoader\n"
        f"{own}\n\n"
        "def train(model, data):\n"
        "    for x in cycle(DataLoader(data)):\n"
        "        model(x.cuda()).sum().backward()\n"
    )
    (tmp_path / "program.py").write_text(code)
    (tmp_path / "tools.py").write_text("def cycle(loader):\n    while True:\n        yield from loader\n")
    assert memlint.lint([tmp_path], isolated=True, select=["MEM107"]).findings == ()


def test_a_name_alone_is_not_shown(tmp_path: Path) -> None:
    """Nothing in the function says that batches come from it."""
    imports = "import torch\nfrom itertools import cycle\n\n\n"
    (tmp_path / "program.py").write_text(f"{imports}def pair(names, loader):\n    return zip(names, cycle(loader))\n")
    assert memlint.lint([tmp_path], isolated=True, select=["MEM107"]).findings == ()


def test_a_list_under_the_name_of_a_loader(tmp_path: Path) -> None:
    assert found(tmp_path, "train_loader = [(1, 2), (3, 4)]", "consume(cycle(train_loader))") == []


@pytest.mark.parametrize(("after", "count"), [("consume(first, second)", 1), ("consume(zip(first, second))", 0)])
def test_iterators_of_a_tee(tmp_path: Path, after: str, count: int) -> None:
    assert len(found(tmp_path, "first, second = tee(loader)", after)) == count


def test_tests_may_keep_what_they_like(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    body = "def test_batches(data):\n    assert len(list(DataLoader(data))) == 2\n"
    (tmp_path / "tests" / "test_data.py").write_text(f"from torch.utils.data import DataLoader\n\n\n{body}")
    assert memlint.lint([tmp_path], isolated=True, select=["MEM107"]).findings == ()


@pytest.mark.parametrize(
    ("expression", "fixed"),
    [
        ("itertools.cycle(loader)", True),
        ("itertools.cycle(iter(loader))", False),  # (which is gone through once)
        ("itertools.cycle(train_loader)", False),
        ("itertools.cycle(build(data))", False),
        ("cycle(loader)", False),
    ],
)
def test_the_fix(tmp_path: Path, expression: str, fixed: bool) -> None:
    (each,) = found(tmp_path, f"consume({expression})")
    assert (each.fix is not None) == fixed
    if each.fix is not None:
        assert each.fix.safety == "unsafe"
        assert "".join(edit.content for edit in each.fix.edits).startswith("itertools.chain.from_iterable(")


HANDLERS = """
import itertools
import torch
from torch.utils.data import DataLoader


class Handlers:
    source = None
    batches = None


def make(data):
    return DataLoader(data, batch_size=2) if data else DataLoader([])


def make_both(data):
    return make(data), ["image", "label"]


def prepare(data):
    handlers = Handlers()
    {value}
    return handlers


def infer(handlers):
    handlers.batches = itertools.cycle(handlers.source)
    handlers.trainer.forward(next(handlers.batches))


def main(data):
    infer(prepare(data))
"""


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("handlers.source = make(data)", 1),
        ("handlers.source, data.keys = make_both(data)", 1),
        ("data.keys, handlers.source = make_both(data)", 0),
        ("handlers.source = sorted(data)", 0),
        ("handlers.source = data.source", 0),
    ],
)
def test_an_attribute_that_another_function_sets(tmp_path: Path, value: str, count: int) -> None:
    (tmp_path / "program.py").write_text(HANDLERS.format(value=value))
    assert len(memlint.lint([tmp_path], isolated=True, select=["MEM107"]).findings) == count


MOVED = """
import torch
from torch.utils.data import DataLoader
from itertools import cycle


def train(model, {name}, device):
    for x, y in {variable}:
        (model(x.to(device)) - y.to(device)).square().mean().backward()
    return {kept}
"""


@pytest.mark.parametrize(
    ("name", "kept", "confidence"),
    [
        ("train_loader", "cycle(train_loader)", ["medium"]),
        ("train_loader", "list(train_loader)", []),
        ("pairs", "cycle(pairs)", []),
        ("pairs", "list(pairs)", []),
        ("pairs: DataLoader", "list(pairs)", ["high"]),
    ],
)
def test_what_a_loop_brings_to_the_device(tmp_path: Path, name: str, kept: str, confidence: list[str]) -> None:
    """It may be a list of batches as well, which keeps them anyway."""
    (tmp_path / "program.py").write_text(MOVED.format(name=name, variable=name.partition(":")[0], kept=kept))
    findings = memlint.lint([tmp_path], isolated=True, select=["MEM107"]).findings
    assert [each.confidence for each in findings] == confidence


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("challenge_loader", 1),
        ("pathology_loader", 1),
        ("loader_train", 1),
        ("valid_dl", 1),
        ("loader_names", 0),
        ("loader_lengths", 0),
        ("dataloaders", 0),
        ("loader_class", 0),
    ],
)
def test_names_of_loaders(tmp_path: Path, name: str, count: int) -> None:
    assert len(found(tmp_path, f"consume(cycle({name}))", name=name)) == count


@pytest.mark.parametrize(
    ("after", "count"),
    [
        (["first = next(batches)", "consume(first)"], 0),
        (["if settings.check:", "    consume(next(batches), next(batches))"], 0),
        (["consume([next(batches) for _ in data])"], 1),
        (["for _ in data:", "    consume(next(batches))"], 1),
        (["for _ in range(10):", "    consume(next(batches))"], 0),
        (["for _ in range(100):", "    consume(next(batches))"], 1),
        (["first = next(batches)", "consume(batches)"], 1),
        (["consume(lambda: 1)"], 1),
    ],
)
def test_the_first_batch_alone(tmp_path: Path, after: list[str], count: int) -> None:
    assert len(found(tmp_path, "batches = cycle(iter(loader))", *after)) == count


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        pytest.param(
            "for epoch in range(9):\n"
            "        few = cycle(loader)\n"
            "        for step, x in enumerate(data):\n"
            "            if step % 50 == 0:\n"
            "                consume(next(few))\n",
            [],
            id="made anew, and drawn now and then",
        ),
        pytest.param(
            "few = cycle(loader)\n"
            "    for step, x in enumerate(data):\n"
            "        if step % 50 == 0:\n"
            "            consume(next(few))\n",
            ["warning"],
            id="made once: in the end all are drawn",
        ),
        pytest.param(
            "for epoch in range(9):\n"
            "        few = cycle(loader)\n"
            "        for step, x in enumerate(data):\n"
            "            consume(next(few))\n"
            "            if step % 50 == 0:\n"
            "                consume(next(few))\n",
            ["warning"],
            id="drawn each time as well",
        ),
    ],
)
def test_an_iterator_that_gives_few_batches_before_it_is_gone(tmp_path: Path, body: str, codes: list[str]) -> None:
    assert [each.severity for each in found(tmp_path, body)] == codes
