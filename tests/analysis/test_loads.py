"""Checkpoints that are loaded onto the device that they were saved from, beside what else is loaded, and elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

PROGRAM = """
import torch
from library import consume


def {name}(model, {path}, device, **options):
    model = model.to(device)
    {body}
"""


CUDA = "torch.cuda.is_available()"
#: no device where there is an accelerator
HOST_ALONE = f"None if {CUDA} else 'cpu'"


def program(*body: str, name: str = "prepare", path: str = "path") -> str:
    return PROGRAM.format(name=name, path=path, body="\n    ".join(body))


def found(tmp_path: Path, code: str, name: str = "program") -> list[Finding]:
    """What is found in the code that the program uses."""
    (tmp_path / f"{name}.py").write_text(code)
    result = memlint.lint([tmp_path])
    assert not result.failures
    return [each for each in result.findings if each.code == "MEM404" and each.reach != "unused"]


@pytest.mark.parametrize(
    "code",
    [
        program("model.load_state_dict(torch.load(path))"),
        program("model.load_state_dict(torch.load(path, None))"),
        program("model.load_state_dict(torch.load(path, weights_only=True)['net'], strict=False)"),
        program("loaded = torch.load(path)", "model.load_state_dict(loaded)"),
        program("loaded = torch.load(path)", "part = loaded['net']", "model.load_state_dict(part)"),
        program(f"model.load_state_dict(torch.load(path, map_location={HOST_ALONE}))"),
        program(f"where = {HOST_ALONE}", "model.load_state_dict(torch.load(path, map_location=where))").replace(
            HOST_ALONE, f"None\n    if not {CUDA}:\n        where = torch.device('cpu')"
        ),
        program("info = torch.load(path)", "torch.load(info['best'], 'cpu')", "model.load_state_dict(info['last'])"),
        program("checkpoint = torch.load(path)", "consume(model, checkpoint)"),
        program("consume(model, torch.load(ckpt))", path="ckpt"),
        program("consume(model, torch.load('runs/last_checkpoint.pt'))"),
        program("old = torch.load(path)", "model.load_state_dict(old)", "old = device.x", "torch.load(old, 'cpu')"),
        program("ckpt = torch.load(ckpt)", "if not ckpt:", "    ckpt = torch.load(ckpt, device)", path="ckpt"),
        program("return torch.load(path)", name="load_checkpoint"),
        program("loaded = torch.load(model_path)", "consume(loaded['net'])", path="model_path"),
    ],
)
def test_a_checkpoint(tmp_path: Path, code: str) -> None:
    assert [each.severity for each in found(tmp_path, code)] == ["note"]


@pytest.mark.parametrize(
    "code",
    [
        program("model.load_state_dict(torch.load(path, map_location=device))"),
        program("model.load_state_dict(torch.load(path, device))"),
        program("model.load_state_dict(torch.load(path, **options))"),
        program("model.load_state_dict(torch.load(*path))"),
        program(f"model.load_state_dict(torch.load(path, map_location=device if {CUDA} else 'cpu'))"),
        program("model.load_state_dict(torch.load(path, map_location=None if options else 'cpu'))"),
        program("where = None", "where = options['to']", "model.load_state_dict(torch.load(path, where))"),
        program("where = 'cpu'", f"if {CUDA}:", "    where = device", "model.load_state_dict(torch.load(path, where))"),
        program("loaded = torch.load(path)", "consume(model, loaded)"),
        program("features = torch.load('pretrained_features.pt')", "consume(model, features)"),
        program("weights = torch.load('class_weights.pt')", "consume(model, weights)"),
        program("consume(model, torch.load(cpu_checkpoint))", path="cpu_checkpoint"),
        program("consume(model, torch.load(checkpoint).cpu())", path="checkpoint"),
        program("kept = {k: v.cpu() for k, v in torch.load(checkpoint).items()}", path="checkpoint"),
        program("old = torch.load(checkpoint)", "model.load_state_dict(old.state_dict())", path="checkpoint"),
        program("model = torch.load(checkpoint)", "return model(device)", path="checkpoint"),
        program("return torch.load(model_path)", path="model_path"),
        program("consume(torch.load(path), model)", name="load_checkpoint_data"),
        program("info = torch.load(path)", "model.load_state_dict(torch.load(info['last'], 'cpu'))"),
        program(
            "info = torch.load(path)", "last = torch.load(info['last'], 'cpu')", "model.load_state_dict(last['net'])"
        ),
        program("device.ckpt = torch.load(path)['ckpt']", "model.load_state_dict(torch.load(device.ckpt, 'cpu'))"),
        "import pickle\n" + program("model.load_state_dict(pickle.load(path))"),
    ],
)
def test_anything_else(tmp_path: Path, code: str) -> None:
    assert found(tmp_path, code) == []


@pytest.mark.parametrize(
    ("body", "number"),
    [
        (("net = consume()", "net.load_state_dict(torch.load(path))", "return net"), 0),
        (("net = consume()", "net.load_state_dict(torch.load(path))", "net.to(device)"), 0),
        (("model.load_state_dict(torch.load(path))", "model = model.cuda()"), 1),  # (which is there already)
        (("net = consume()", "loaded = torch.load(path)", "net.load_state_dict(loaded)", "return net"), 0),
        (("net = consume()", "loaded = torch.load(path)", "net.load_state_dict(loaded)", "net = net.cuda()"), 1),
        (("loaded = torch.load(path)", "net = consume(loaded['size'])", "net.load_state_dict(loaded['net'])"), 0),
        (("optimizer = consume(model)", "optimizer.load_state_dict(torch.load(path))"), 0),
        (("net = consume()", "net.body.load_state_dict(torch.load(path))", "net.to(device)"), 0),
        (("net = consume()", "net.to(device)", "net.body.load_state_dict(torch.load(path))"), 1),
        (("net = consume().to(device)", "net.load_state_dict(torch.load(path))"), 1),
        (("net = consume()", "torch.nn.DataParallel(net).cuda()", "net.load_state_dict(torch.load(path))"), 1),
        (("net = consume(device)", "net.load_state_dict(torch.load(path))"), 1),
    ],
)
def test_a_model_that_meets_it(tmp_path: Path, body: tuple[str, ...], number: int) -> None:
    assert len(found(tmp_path, program(*body))) == number


HELPER = """

def restore(model, path):
    model.load_state_dict(torch.load(path))
"""
PARTS = """
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, path=None{more}):
        super().__init__()
        {made}
        {loads}

    def restore(self, path):
        found = torch.load(path)
        own = self.state_dict()
        for key, value in found.items():
            if key in own:
                own[key] = value
        self.load_state_dict(own)

    def forward(self, x):
        return self.body(x)


def build(path, device):
    net = Encoder(path)
    {use}
    return net.to(device)


if __name__ == "__main__":
    build("a.pt", "cuda")
"""


def part(
    loads: str = "pass", use: str = "pass", made: str = "self.body = nn.Linear(4, 4)", more: str = "", end: str = ""
) -> str:
    return PARTS.format(loads=loads, use=use, made=made, more=more) + end


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(part("self.load_state_dict(torch.load(path))", "net.eval()"), id="itself, as it is made"),
        pytest.param(part("self.body.load_state_dict(torch.load(path))"), id="a part of it, made there"),
        pytest.param(part("self.restore(path)"), id="a method that it calls as it is made"),
        pytest.param(part(use="net.restore(path)"), id="a method that is called before it is brought there"),
        pytest.param(part(use="restore(net, path)", end=HELPER), id="a function that is given it before"),
        pytest.param(
            part("weights = torch.load(path)\n        self.load_state_dict({k: weights[k] for k in weights})"),
            id="what is made of it",
        ),
    ],
)
def test_a_model_on_the_host_does_not_meet_it(tmp_path: Path, code: str) -> None:
    (tmp_path / ".git").mkdir()
    assert found(tmp_path, code) == []


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(part(use="net.cuda()\n    net.restore(path)"), id="brought there before"),
        pytest.param(part("self.cuda()\n        self.restore(path)"), id="by itself"),
        pytest.param(part("self.to('cuda')", use="net.restore(path)"), id="by itself, and loaded by others"),
        pytest.param(part("self.cuda()\n        self.body.load_state_dict(torch.load(path))"), id="with its parts"),
        pytest.param(
            part("self.body.load_state_dict(torch.load(path))", made="self.body = body", more=", body=None"),
            id="a part that others made",
        ),
        pytest.param(part(use="restore(net.cuda(), path)", end=HELPER), id="given after that"),
        pytest.param(
            part(use="restore(net, path)", end=HELPER) + "    restore(build('b.pt', 'cuda'), 'c.pt')\n",
            id="given from somewhere else too",
        ),
    ],
)
def test_a_model_that_may_be_on_the_device_meets_it(tmp_path: Path, code: str) -> None:
    (tmp_path / ".git").mkdir()
    assert len(found(tmp_path, code)) == 1


@pytest.mark.parametrize(
    ("saved", "number"),
    [
        ("torch.save(self, path)", 0),
        ("torch.save(self.model.module, path)", 0),
        ("torch.save(self.state_dict(), path)", 1),
        ("torch.save(self.model_state, path)", 1),
        ("pass  # torch.save(self, path)", 1),
        ("print('torch.save(model, path)')", 1),
    ],
)
@pytest.mark.parametrize("loads", ["return torch.load('last.ckpt')", "loaded = torch.load('last.ckpt'); return loaded"])
def test_what_may_be_a_whole_model(tmp_path: Path, saved: str, number: int, loads: str) -> None:
    (tmp_path / "saving.py").write_text(f"import torch\n\n\ndef save(self, path):\n    {saved}\n")
    assert len(found(tmp_path, program(loads))) == number


def test_the_object_of_a_class_is_a_whole_model(tmp_path: Path) -> None:
    of_class = "import torch\n\nclass Trained:\n    def __new__(cls, device='cuda'):\n        return torch.load({})\n"
    assert found(tmp_path, of_class.format("'weights/last.ckpt'")) == []


def test_each_process_of_several(tmp_path: Path) -> None:
    code = program("torch.distributed.init_process_group('nccl')", "model.load_state_dict(torch.load(path))")
    assert ["in each process" in each.message for each in found(tmp_path, code)] == [True]


def test_the_side_of_one_process_is_a_note(tmp_path: Path) -> None:
    test = "if torch.distributed.is_initialized():"
    alone = (test, "    pass", "else:", "    model.load_state_dict(torch.load(path))")
    code = program(*alone, "consume(torch.distributed.init_process_group)")
    assert ["in each process" in each.message for each in found(tmp_path, code)] == [False]


def test_a_file_for_each_process_is_a_note(tmp_path: Path) -> None:
    code = program(
        "torch.distributed.init_process_group('nccl')", "model.load_state_dict(torch.load(path[options['rank']]))"
    )
    assert ["in each process" in each.message for each in found(tmp_path, code)] == [False]


START = "torch.distributed.init_process_group('nccl')"
LOAD = "model.load_state_dict(torch.load(path))"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(("if options['is_main_process']:", f"    {LOAD}"), id="one process does it"),
        pytest.param(("if options['rank'] == 0:", f"    {LOAD}"), id="the first does it"),
        pytest.param((LOAD, "torch.multiprocessing.spawn(consume, nprocs=2)"), id="before there are others"),
        pytest.param(
            (
                "if options['gpu'] is None:",
                f"    {LOAD}",
                "else:",
                "    model.load_state_dict(torch.load(path, map_location=options['gpu']))",
            ),
            id="each process has a way of its own",
        ),
    ],
)
def test_not_each_process_of_several(tmp_path: Path, body: tuple[str, ...]) -> None:
    told = [each.message for each in found(tmp_path, program(START, *body))]
    assert told
    assert not any("in each process" in message for message in told)


def test_a_schedule_is_made_of_numbers(tmp_path: Path) -> None:
    code = program(START, "scheduler = consume(model)", "scheduler.load_state_dict(torch.load(path))")
    assert found(tmp_path, code) == []


HOST = """
import torch


def restore(model, path):
    model.load_state_dict(torch.load(path))  # no gpu here
"""


def test_a_project_of_the_host(tmp_path: Path) -> None:
    assert found(tmp_path, HOST) == []


def test_a_helper_of_a_project_that_uses_a_device(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from program import restore\n\n\ndef main(net):\n    restore(net.cuda(), 'a')\n"
    )
    assert len(found(tmp_path, HOST)) == 1


def test_a_script_of_the_host_in_such_a_project(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def main(net):\n    net.cuda()\n")
    assert found(tmp_path, HOST + "\n\nif __name__ == '__main__':\n    restore(None, 'a')\n") == []


@pytest.mark.parametrize(
    ("body", "safety"),
    [
        ("model.load_state_dict(torch.load(path))", "safe"),
        ("model.load_state_dict(torch.load(path), strict=False)", "safe"),
        ("model.load_state_dict(torch.load(path)['net'])", "unsafe"),
        ("from averaging import averages\n    state = torch.load(path)\n    averages.load_state_dict(state)", "unsafe"),
        ("checkpoint = torch.load(path)", "unsafe"),
    ],
)
def test_the_fix(tmp_path: Path, body: str, safety: str) -> None:
    (finding,) = found(tmp_path, program(body))
    assert finding.fix is not None
    assert finding.fix.safety == safety
    assert "map_location" in finding.fix.edits[0].content


@pytest.mark.parametrize(
    ("body", "said", "unsaid"),
    [
        (("model.load_state_dict(torch.load(path))",), "there, beside the model", "until"),
        (("state = torch.load(path)", "model.load_state_dict(state)"), "beside the model until `state` is freed", "="),
        (("ckpt = torch.load(path)", "print(ckpt['epoch'])"), "takes memory there until `ckpt` is freed", "the model"),
        (("model.load_state_dict(torch.load(path), assign=True)",), "`assign=True`", "beside"),
        (("state = torch.load(path)", "model.load_state_dict(state['m'], assign=True)"), "`assign=True`", "beside"),
        (("rows = torch.load(path)", "return model(rows.to(device))"), None, ""),
        (("net = consume()", "net.load_state_dict(torch.load(path))", "return net"), None, ""),
        (("load_checkpoint(model, torch.load(path))",), "there, beside the model", "until"),
        (("load_checkpoint(model, torch.load(path)['net'])",), "there, beside the model", "until"),
        (("state = torch.load(path)", "load_checkpoint(model, state)"), "beside the model until `state` is freed", "="),
        (("net = consume()", "load_checkpoint(net, torch.load(path))", "net.to(device)"), None, ""),
        (("consume.load_weights(model, torch.load(path))",), "there, beside the model", "until"),
        (("consume.show(model, torch.load(path))",), None, ""),
    ],
)
def test_what_a_checkpoint_lies_beside(tmp_path: Path, body: tuple[str, ...], said: str | None, unsaid: str) -> None:
    helper = "\n\ndef load_checkpoint(module, state):\n    module.load_state_dict({**state})\n"
    messages = [each.message for each in found(tmp_path, program(*body) + helper)]
    assert len(messages) == (0 if said is None else 1)
    assert all(said is not None and said in message and unsaid not in message for message in messages)


def test_the_tensors_that_become_parameters_are_not_moved(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, program("model.load_state_dict(torch.load(path), assign=True)"))
    assert finding.fix is None


def test_a_load_of_the_projects_own_is_not_trusted(tmp_path: Path) -> None:
    own = "\n\nclass Average:\n    def load_state_dict(self, state):\n        self.state = state\n"
    (finding,) = found(tmp_path, program("model.load_state_dict(torch.load(path))") + own)
    assert finding.fix is not None
    assert finding.fix.safety == "unsafe"


def test_a_file_that_brings_other_tensors_to_the_host(tmp_path: Path) -> None:
    """Only where a state is copied to the host before it is saved, the file tells of the device it was saved from."""
    other = "\n\ndef collect(rows, v):\n    rows.append(v.cpu())\n"
    saved = "\n\ndef save(model):\n    torch.save({k: v.cpu() for k, v in model.state_dict().items()}, 'last')\n"
    load = program("state = torch.load(path)", "model.load_state_dict(state)")
    assert len(found(tmp_path, load + other)) == 1
    assert len(found(tmp_path, load + saved)) == 0


RESUMED = """
import torch


class Learner:
    def __init__(self, net):
        self.net = net.cuda()
        self.seen = []
        self.best = None

    def restore(self):
        self.net.load_state_dict(self.best)

    def {method}(self, name):
        self.{attribute} = torch.load(name)
"""


@pytest.mark.parametrize(
    ("method", "attribute", "expected"),
    [
        ("resume_training", "seen", 0),  # (the list itself, which is there once)
        ("resume_training", "best", 1),
        ("resume_training", "checkpoint", 1),
        ("resume_training", "state_dict", 1),
    ],
)
def test_what_an_object_takes_for_its_own_is_no_checkpoint(
    tmp_path: Path, method: str, attribute: str, expected: int
) -> None:
    assert len(found(tmp_path, RESUMED.format(method=method, attribute=attribute))) == expected


SAVED = """
import torch
from library import train


def {name}({given}):
    model = train("out").cuda()
    checkpoint = torch.load("out/best.pt")
    assert checkpoint["epoch"] == 1
    return model
"""


@pytest.mark.parametrize(
    ("file", "name", "given", "expected"),
    [
        ("test_train", "test_contents", "", 0),  # (a test of the project)
        ("test_train", "helper", "", 1),
        ("trained", "contents", "", 1),
        ("trained", "test_epoch", "loader", 1),  # (which the program calls)
    ],
)
def test_what_a_test_of_the_project_looks_at(tmp_path: Path, file: str, name: str, given: str, expected: int) -> None:
    assert len(found(tmp_path, SAVED.format(name=name, given=given), file)) == expected


@pytest.mark.parametrize(("folder", "expected"), [("tests/fixtures", 0), ("testing/fixtures", 1)])
def test_what_lies_with_the_tests(tmp_path: Path, folder: str, expected: int) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "values.py").write_text(SAVED.format(name="load_checkpoint", given=""))
    assert len([one for one in memlint.lint([tmp_path]).findings if one.code == "MEM404"]) == expected


def test_a_test_that_a_program_runs_is_none(tmp_path: Path) -> None:
    code = SAVED.format(name="test_model", given="") + "\n\nif __name__ == '__main__':\n    test_model()\n"
    assert len(found(tmp_path, code, "test_model")) == 1
