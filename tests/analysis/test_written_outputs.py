"""Outputs that are collected and then written or shown by a library: nothing trains by them, so that their graphs are
kept in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

COLLECTED = """
import torch
from transformers import AutoModel
{imports}


def main(loader, path, optimizer):
    model = AutoModel.from_pretrained("some/bert").cuda()
    rows = []
    for x in loader:
        rows.append(model(x.cuda()).last_hidden_state[:, -1])
    rows = torch.cat(rows)
    {use}
"""


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("", "torch.save(rows, path)"),
        ("from safetensors.torch import save_file", "save_file({'rows': rows}, path)"),
        ("import safetensors.torch as st", "st.save_file({'rows': rows.contiguous()}, path)"),
        ("from safetensors.torch import save", "open(path, 'wb').write(save({'rows': rows}))"),
        ("import joblib", "joblib.dump(rows, path)"),
        ("import dill", "dill.dump(rows, open(path, 'wb'))"),
        ("import cloudpickle", "open(path, 'wb').write(cloudpickle.dumps(rows))"),
        ("from accelerate.utils import save", "save(rows, path)"),
        ("from pprint import pprint", "pprint(rows)"),
        ("from IPython.display import display", "display(rows)"),
        ("from tqdm import tqdm", "tqdm.write(str(rows))"),
        ("import torchaudio", "torchaudio.save(path, rows.cpu(), sample_rate=16000)"),
        ("from torchvision.io import write_png", "write_png(rows.byte(), path)"),
    ],
)
def test_a_library_that_writes_or_shows(tmp_path: Path, imports: str, use: str) -> None:
    found = codes_in(tmp_path, COLLECTED.format(imports=imports, use=use))
    assert sorted(found) == ["MEM102", "MEM201"]


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("import joblib", "joblib.Parallel(2)(joblib.delayed(path)(row) for row in rows)"),
        ("from library import save_file", "save_file({'rows': rows}, path)"),
        ("import joblib", "joblib.dump(rows, path)\n    rows.sum().backward()\n    optimizer.step()"),
        (
            "from safetensors.torch import save_file",
            "save_file({'rows': rows}, path)\n    (rows * 2).mean().backward()\n    optimizer.step()",
        ),
        ("from pprint import pprint", "pprint(rows)\n    return rows"),
        ("import torchaudio", "torchaudio.save(path, rows, 16000)\n    rows.sum().backward()\n    optimizer.step()"),
        ("import torchaudio", "return torchaudio.functional.resample(rows, 16000, 8000)"),
    ],
)
def test_what_may_train_by_the_outputs(tmp_path: Path, imports: str, use: str) -> None:
    assert codes_in(tmp_path, COLLECTED.format(imports=imports, use=use)) == []


APPLIED = """
import torch
import torchaudio


def main(paths, folder):
    model = {model}
    for path in paths:
        x, rate = torchaudio.load(path)
        {use}
"""
NETWORK = "torch.nn.Sequential(torch.nn.Conv1d(1, 64, 9), torch.nn.Conv1d(64, 1, 9)).cuda()"


@pytest.mark.parametrize(
    ("model", "use", "expected"),
    [
        (NETWORK, "torchaudio.save(folder, model(x[None].cuda())[0].cpu(), rate)", ["MEM201"]),
        (NETWORK, "torchaudio.save(folder, torch.no_grad()(model)(x[None].cuda())[0].cpu(), rate)", []),
        (NETWORK, "x.requires_grad_()\n        folder.add(torchaudio.save(folder, model(x).mean(), rate), x.grad)", []),
        ("torch.nn.Identity()", "torchaudio.save(folder, model(x), rate)", []),
    ],
)
def test_a_network_between_two_audio_files(tmp_path: Path, model: str, use: str, expected: list[str]) -> None:
    assert codes_in(tmp_path, APPLIED.format(model=model, use=use)) == expected
