"""Models that one process spreads over devices: over how many, and whether the program trains in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import os

import torch
from torch import nn
from torch.nn.parallel import DataParallel as Spread
from library import wrap, DataParallel
{top}


def prepare(model, args, gpu_ids, x, gpu_id=0, **options):
    {body}
    return model


def train(model, loader, optimizer):
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
"""


def found(tmp_path: Path, *body: str, top: str = "") -> list[tuple[str, str]]:
    (tmp_path / "train.py").write_text(PROGRAM.format(top=top, body="\n    ".join(body)))
    return findings(tmp_path)


def findings(tmp_path: Path) -> list[tuple[str, str]]:
    (tmp_path / "pyproject.toml").touch()
    result = memlint.lint([tmp_path], isolated=True, preview=True, min_confidence="low")
    assert not result.failures
    return [(each.severity, each.confidence) for each in result.findings if each.code == "MEM405"]


@pytest.mark.parametrize(
    ("call", "confidence"),
    [
        ("nn.DataParallel(model)", "high"),
        ("Spread(module=model)", "high"),
        ("torch.nn.parallel.DataParallel(model)", "high"),
        ("nn.DataParallel(model, None)", "high"),
        ("nn.DataParallel(model, dim=1).cuda()", "high"),
        ("nn.DataParallel(model, device_ids=[0, 1])", "high"),
        ("nn.DataParallel(model, (2, 3))", "high"),
        ("nn.DataParallel(model, range(4))", "high"),
        ("nn.DataParallel(model, list(range(torch.cuda.device_count())))", "high"),
        ("nn.DataParallel(model, gpu_ids)", "low"),
        ("nn.DataParallel(model, [int(one) for one in args.gpus.split(',')])", "low"),
        ("nn.DataParallel(model, list(range(args.gpus)))", "low"),
        ("nn.DataParallel(model, **options)", "low"),
    ],
)
def test_several_devices(tmp_path: Path, call: str, confidence: str) -> None:
    assert found(tmp_path, f"model = {call}") == [("note", confidence)]


@pytest.mark.parametrize(
    "call",
    [
        "nn.DataParallel(model, [0])",
        "nn.DataParallel(model, device_ids=[args.gpu])",
        "nn.DataParallel(model, device_ids=(gpu_id,))",
        "nn.DataParallel(model, device_ids=[torch.device('cuda:0')])",
        "nn.DataParallel(model, device_ids=0)",
        "nn.DataParallel(model, device_ids=range(1))",
        "wrap(model)",
        "DataParallel(model)",
        "nn.Sequential(model)",
    ],
)
def test_one_device_or_another_function(tmp_path: Path, call: str) -> None:
    assert found(tmp_path, f"model = {call}") == []


@pytest.mark.parametrize(("ids", "number"), [("[0]", 0), ("[0, 1]", 1)])
def test_a_list_by_name(tmp_path: Path, ids: str, number: int) -> None:
    assert len(found(tmp_path, f"ids = {ids}", "model = nn.DataParallel(model, ids)")) == number
    assert len(found(tmp_path, "model = nn.DataParallel(model, IDS)", top=f"IDS = {ids}")) == number


@pytest.mark.parametrize(
    ("test", "confidence"),
    [
        ("torch.cuda.device_count() > 1", "medium"),
        ("args.cuda and len(gpu_ids) > 1", "medium"),
        ("args.num_gpus >= 2", "medium"),
        ("len(gpu_ids) > 0", "low"),
        ("args.epochs > 1", "low"),
    ],
)
def test_a_list_that_is_told(tmp_path: Path, test: str, confidence: str) -> None:
    body = (f"if {test}:", "    model = nn.DataParallel(model, gpu_ids)")
    assert found(tmp_path, *body) == [("note", confidence)]


def test_both_sides_of_a_test_are_one_model(tmp_path: Path) -> None:
    body = (
        "if args.arch == 'vgg':",
        "    model.features = nn.DataParallel(model.features)",
        "else:",
        "    model = nn.DataParallel(model)",
    )
    assert len(found(tmp_path, *body)) == 1


@pytest.mark.parametrize(
    "top",
    [
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0"',
        "os.environ['CUDA_VISIBLE_DEVICES']='2'",
        'os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")',
        "from torch.nn.parallel import DistributedDataParallel",
        "torch.distributed.init_process_group('nccl')",
    ],
)
def test_one_process_sees_one_device(tmp_path: Path, top: str) -> None:
    assert found(tmp_path, "model = nn.DataParallel(model)", top=top) == []


@pytest.mark.parametrize(
    "top",
    [
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"',
        "# os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
        'os.environ["CUDA_VISIBLE_DEVICES"] = wrap("0")',
        "# DistributedDataParallel is another way",
        "'DistributedDataParallel is another way'",
    ],
)
def test_what_says_nothing_of_it(tmp_path: Path, top: str) -> None:
    assert len(found(tmp_path, "model = nn.DataParallel(model)", top=top)) == 1


@pytest.mark.parametrize(
    ("body", "number"),
    [
        (("model = nn.DataParallel(model)", "model.load_state_dict(x)"), 1),  # (the file trains it)
        (("model = nn.DataParallel(model).cuda()", "model.eval()"), 0),
        (("model = nn.DataParallel(model).eval()",), 0),
        (("model = nn.DataParallel(model).cuda().eval()", "model.train()"), 1),
        (("model = nn.DataParallel(model)", "model.eval()", "wrap(model)", "model.train()"), 1),
        (("model = nn.DataParallel(model)", "model.load_state_dict(x)", "model = model.module"), 0),
        (("model = nn.DataParallel(model)", "model.size = model.module.size"), 1),
        (("teacher = nn.DataParallel(wrap(model))",), 0),
        (("teacher = wrap(model)", "teacher = nn.DataParallel(teacher)"), 0),
        (("model.optimizer = nn.DataParallel(model.optimizer)",), 0),
        (("scheduler = wrap(x)", "scheduler = nn.DataParallel(scheduler)"), 0),
        (("inception_net = wrap(x)", "return nn.DataParallel(inception_net)"), 0),
    ],
)
def test_a_model_that_is_trained(tmp_path: Path, body: tuple[str, ...], number: int) -> None:
    assert len(found(tmp_path, *body)) == number


@pytest.mark.parametrize("name", ["test_net.py", "tests/net.py", "evaluate.py", "ema.py"])
def test_a_file_that_runs_a_trained_model(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(PROGRAM.format(top="", body="model = nn.DataParallel(model)"))
    assert findings(tmp_path) == []


HELPER = "from torch import nn\n\n\ndef spread(model):\n    return nn.DataParallel(model)\n"


@pytest.mark.parametrize(
    ("files", "number"),
    [
        ({"helper.py": HELPER}, 0),
        (
            {
                "helper.py": "from torch import nn\n\n\ndef read(model, state):\n    model = nn.DataParallel(model)\n"
                "    model.load_state_dict(state)\n    return model\n",
                "train.py": "def step(loss):\n    loss.backward()\n",
            },
            0,
        ),
        ({"helper.py": HELPER, "train.py": "def step(loss):\n    loss.backward()\n"}, 1),
        (
            {
                "predict.py": HELPER + "\n\nif __name__ == '__main__':\n    spread(nn.Linear(2, 2))\n",
                "train.py": "def step(loss):\n    loss.backward()\n",
            },
            0,
        ),
    ],
)
def test_only_programs_that_train(tmp_path: Path, files: dict[str, str], number: int) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert len(findings(tmp_path)) == number
