"""Guards that decorate coroutine functions, and functions that a route has registered."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from linting import codes_in

found = functools.partial(codes_in, name="server.py")

SERVER = """
import torch
from outside import app, load, decode, guarded

net = load().cuda()
net.eval()


{decorators}
{define} predict(image):
    {body}
"""
RUN = "return net(decode(image).cuda()).argmax(1).tolist()"
GUARDED = f"with torch.no_grad(): {RUN}"


@pytest.mark.parametrize(
    ("decorators", "define", "body", "codes"),
    [
        ("@torch.no_grad()", "async def", RUN, ["MEM203"]),
        ('@app.post("/predict")\n@torch.inference_mode()', "async def", RUN, ["MEM203"]),
        ("@torch.no_grad", "async def", RUN, ["MEM203"]),
        # an asynchronous generator
        ("@torch.no_grad()", "async def", RUN.replace("return", "yield"), ["MEM203"]),
        # not known to be a network
        ('@app.post("/predict")\n@torch.no_grad()', "async def", "return image.serve()", []),
        ('@torch.no_grad()\n@app.post("/predict")', "def", "return image.serve()", []),
        ("@torch.no_grad()", "async def", "return image.serve()", []),
        # what runs the coroutine to its end under the guard
        ("@torch.no_grad()\n@guarded", "async def", RUN, []),
        ("@guarded\n@torch.no_grad()", "async def", RUN, ["MEM203"]),
        ("@torch.no_grad()", "async def", GUARDED, []),
        ("@torch.no_grad()", "def", RUN, []),
        ("@torch.enable_grad()", "async def", GUARDED, []),
        # of another library: it may know coroutines
        ("@guarded", "async def", GUARDED, []),
        # above a route
        ('@torch.no_grad()\n@app.route("/predict")', "def", RUN, ["MEM203"]),
        ('@torch.no_grad()\n@app.api.get("/predict", tags=["a"])', "def", RUN, ["MEM203"]),
        ('@torch.no_grad()\n@app.route("/predict")', "def", GUARDED, []),
        ('@torch.no_grad()\n@app.route("/predict")\n@torch.no_grad()', "def", GUARDED, []),
        ('@app.route("/predict")\n@torch.no_grad()', "def", RUN, []),
        # no route: a cache, a path of another kind
        ("@torch.no_grad()\n@app.cached", "def", RUN, []),
        ('@torch.no_grad()\n@app.get("limit")', "def", RUN, []),
    ],
)
def test_a_guard_over_a_handler(tmp_path: Path, decorators: str, define: str, body: str, codes: list[str]) -> None:
    text = SERVER.replace("{decorators}", decorators).replace("{define}", define).replace("{body}", body)
    assert found(tmp_path, text) == codes


@pytest.mark.parametrize("freeze", ["net.requires_grad_(False)", "for p in net.parameters(): p.requires_grad = False"])
def test_a_network_that_is_frozen(tmp_path: Path, freeze: str) -> None:
    text = SERVER.replace("net.eval()", f"net.eval()\n{freeze}").replace("{decorators}", "@torch.no_grad()")
    assert found(tmp_path, text.replace("{define}", "async def").replace("{body}", RUN)) == []


STEP = """
import torch


@torch.no_grad()
async def step(net, x, y, criterion, optimizer):
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_guard_without_effect_over_a_coroutine_that_trains(tmp_path: Path) -> None:
    assert found(tmp_path, STEP) == []
