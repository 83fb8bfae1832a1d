"""Threads that code starts where grad mode is off: it is on in them, and nobody wants a graph of what they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SOURCE = """
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = nn.Linear(8, 8)

    def decode(self, latents, frames):
        {decode}

    {decorator}
    def speak(self, latents):
        frames = queue.Queue()
        {start}
        return frames

    def also(self, latents, frames):
        {also}
"""

DECODE = """while True:
            latent = latents.get()
            if latent is None:
                break
            frames.put(self.decoder(latent))"""
START = "threading.Thread(target=self.decode, args=(latents, frames)).start()"


def found(folder: Path, **parts: str) -> list[str]:
    usual = {"decode": DECODE, "decorator": "@torch.no_grad()", "start": START, "also": "pass"}
    return codes_in(folder, SOURCE.format(**{**usual, **parts}))


INNER = """
        def work():
            self.decode(latents, frames)

        threading.Thread(target=work).start()"""
BLOCK = """with torch.inference_mode():
            threading.Thread(target=self.decode, args=(latents, frames), daemon=True).start()"""
POOL = """with ThreadPoolExecutor() as pool:
            pool.submit(self.decode, latents, frames)"""


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="under a decorator"),
        pytest.param({"start": INNER}, id="through a function inside"),
        pytest.param({"start": BLOCK, "decorator": ""}, id="in a block"),
        pytest.param({"start": POOL}, id="by a pool"),
    ],
)
def test_a_guard_that_ends_at_the_thread(tmp_path: Path, parts: dict[str, str]) -> None:
    assert found(tmp_path, **parts) == ["MEM201"]


GUARDED = """with torch.no_grad():
            for latent in iter(latents.get, None):
                frames.put(self.decoder(latent))"""
TRAINS = DECODE.replace("self.decoder(latent)", "self.decoder(latent).sum().backward()")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"decorator": ""}, id="started where grad mode is on"),
        pytest.param({"also": "self.decode(latents, frames)"}, id="called by others as well"),
        pytest.param({"also": START}, id="started by others as well"),
        pytest.param({"start": "self.decode(latents, frames)"}, id="called under the guard"),
        pytest.param({"decode": TRAINS}, id="trains"),
        pytest.param({"decode": GUARDED}, id="guarded there"),
        pytest.param({"decode": f"torch.set_grad_enabled(False)\n        {DECODE}"}, id="switched off there"),
    ],
)
def test_threads_that_are_right_or_may_be(tmp_path: Path, parts: dict[str, str]) -> None:
    assert found(tmp_path, **parts) == []
