"""Names that are deleted while another one, which nobody reads any more, holds what they named; and what is freed."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

PROGRAM = """
import gc
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from elsewhere import consume


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)

    def forward(self, x):
        return self.layer(x)


class Probe:
    def __init__(self, net, rate):
        self.net = net
        self.rate = rate

    def score(self, x):
        return self.net(x).mean().item() * self.rate


class Reader:
    def __init__(self, net):
        self.width = net.layer.in_features


def fit(net, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(net(x.cuda()), y.cuda()).backward()
        optimizer.step()


def run(loader, loaders, path, device):
    {body}
"""

MAKE = "net = Net().to(device)"
TRAIN = "fit(net, optimizer, loader)"
OTHER = ("other = Net().cuda()", "fit(other, optim.SGD(other.parameters(), lr=0.1), loader)")
ADAM = "optimizer = optim.Adam(net.parameters())"
FREE = ("del net", "torch.cuda.empty_cache()")


def program(*body: str) -> str:
    return PROGRAM.format(body="\n    ".join(body))


def found(tmp_path: Path, code: str) -> list[Finding]:
    (tmp_path / "program.py").write_text(code)
    result = memlint.lint([tmp_path], isolated=True, preview=True)
    assert not result.failures
    return [each for each in result.findings if each.code == "MEM110"]


@pytest.mark.parametrize(
    ("body", "holder"),
    [
        pytest.param((MAKE, ADAM, TRAIN, *FREE, *OTHER), "`optimizer`", id="its optimizer"),
        pytest.param(
            (
                MAKE,
                "optimizer = optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1)",
                TRAIN,
                *FREE,
                *OTHER,
            ),
            "`optimizer`",
            id="an optimizer of a list",
        ),
        pytest.param(
            (MAKE, "parts = list(net.parameters())", "optimizer = optim.SGD(parts, 0.1)", TRAIN, *FREE, *OTHER),
            "`parts`",
            id="the list as well",
        ),
        pytest.param(
            (
                MAKE,
                ADAM,
                "schedule = optim.lr_scheduler.StepLR(optimizer, 10)",
                TRAIN,
                "schedule.step()",
                "del net, optimizer",
                "gc.collect()",
                *OTHER,
            ),
            "`schedule`",
            id="the schedule of its optimizer",
        ),
        pytest.param((MAKE, "probe = Probe(net, 2)", "probe.score(loader)", *FREE, *OTHER), "`probe`", id="an object"),
        pytest.param((MAKE, "copy = net.eval()", "copy(loader)", *FREE, *OTHER), "`copy`", id="another name"),
        pytest.param(
            (MAKE, "spread = DistributedDataParallel(net)", "spread(loader)", *FREE, *OTHER), "`spread`", id="a wrapper"
        ),
        pytest.param((MAKE, "nets = [net]", "consume(nets)", *FREE, *OTHER), "`nets`", id="a list"),
        pytest.param(
            (MAKE, "nets = []", "nets.append(net)", "consume(nets)", *FREE, *OTHER), "`nets`", id="added to a list"
        ),
        pytest.param(
            (MAKE, "state = net.state_dict()", "torch.save(state, path)", *FREE, *OTHER), "`state`", id="state"
        ),
        pytest.param(
            (MAKE, "loss = net(loader).mean()", "loss.backward()", *FREE, *OTHER), "`loss`", id="a graph that is freed"
        ),
        pytest.param((MAKE, ADAM, TRAIN, "net = None", "gc.collect()", *OTHER), "`optimizer`", id="None"),
        pytest.param(
            (MAKE, ADAM, TRAIN, "torch.cuda.empty_cache()", "del net", "gc.collect()", *OTHER),
            "`optimizer`",
            id="before",
        ),
        pytest.param(
            (MAKE, ADAM, TRAIN, "del net", "if torch.cuda.is_available():", "    torch.cuda.empty_cache()", *OTHER),
            "`optimizer`",
            id="where there is a gpu",
        ),
    ],
)
def test_what_holds_a_model(tmp_path: Path, body: tuple[str, ...], holder: str) -> None:
    assert [each.severity for each in found(tmp_path, program(*body))] == ["warning"]
    (finding,) = found(tmp_path, program(*body))
    assert holder in finding.message
    assert "fit" in finding.message


@pytest.mark.parametrize(
    "body",
    [
        pytest.param((MAKE, ADAM, TRAIN, "del net, optimizer", "torch.cuda.empty_cache()", *OTHER), id="both"),
        pytest.param(
            (MAKE, ADAM, TRAIN, "del net", "del optimizer", "torch.cuda.empty_cache()", *OTHER), id="and then"
        ),
        pytest.param((MAKE, ADAM, TRAIN, *FREE, "del optimizer", *OTHER), id="the holder at once"),
        pytest.param((MAKE, ADAM, TRAIN, *FREE, "optimizer = None", *OTHER), id="the holder bound to none"),
        pytest.param((MAKE, ADAM, TRAIN, *FREE), id="nothing else needs memory"),
        pytest.param((MAKE, ADAM, TRAIN, *FREE, "return 1", *OTHER), id="that is the end"),
        pytest.param((MAKE, ADAM, TRAIN, *FREE, *OTHER, "torch.save(optimizer.state_dict(), path)"), id="it is needed"),
        pytest.param((MAKE, ADAM, TRAIN, *FREE, *OTHER, "return optimizer"), id="it is returned"),
        pytest.param(
            ("def save():", "    torch.save(optimizer.state_dict(), path)", MAKE, ADAM, TRAIN, *FREE, *OTHER, "save()"),
            id="a nested function needs it",
        ),
        pytest.param((MAKE, ADAM, TRAIN, "del net", *OTHER), id="a name is tidied up"),
        pytest.param((MAKE, ADAM, TRAIN, "net.cpu()", *FREE, *OTHER), id="it is on the host"),
        pytest.param((MAKE, ADAM, TRAIN, "net = net.to('cpu')", *FREE, *OTHER), id="it goes to the host"),
        pytest.param((MAKE, "reader = Reader(net)", "consume(reader)", *FREE, *OTHER), id="an object reads of it"),
        pytest.param((MAKE, "probe = Probe(net, 2)", "probe.net = None", *FREE, *OTHER), id="an object lets go of it"),
        pytest.param((MAKE, "nets = [net]", "consume(nets)", "nets.clear()", *FREE, *OTHER), id="a list is emptied"),
        pytest.param(
            (
                "teacher = consume()",
                MAKE,
                "loss = F.mse_loss(net(loader), teacher(loader))",
                "loss.backward()",
                "print(teacher.training)",
                "del teacher, net",
                "torch.cuda.empty_cache()",
                "print(loss)",
                *OTHER,
            ),
            id="a loss that is read",
        ),
        pytest.param((MAKE, "thing = consume(net)", *FREE, *OTHER), id="who knows what that gives"),
        pytest.param(
            (MAKE, "probe = Probe(net, 2)", "probe.net = None", *FREE, *OTHER, "probe.score(loader)"),
            id="let go before",
        ),
        pytest.param(
            ("optimizer = None", "if path:", f"    {MAKE}", f"    {ADAM}", *FREE, "if path:", f"    {TRAIN}"),
            id="on one side of a test it is read",
        ),
        pytest.param(
            (MAKE, "with torch.no_grad():", "    out = net(loader)", "print(out)", *FREE, *OTHER), id="no graph"
        ),
        pytest.param((MAKE, "out = net(loader).detach()", "print(out)", *FREE, *OTHER), id="a graph that is cut"),
        pytest.param((MAKE, ADAM, TRAIN, MAKE, *FREE, *OTHER), id="another model by that name"),
        pytest.param(("net = consume()", "optimizer = consume(net)", *FREE, *OTHER), id="nobody knows what it is"),
        pytest.param(
            (
                "net = Net()",
                "if path:",
                f"    {ADAM}",
                f"    {TRAIN}",
                "else:",
                "    del net",
                "    gc.collect()",
                *OTHER,
            ),
            id="the other side of a test",
        ),
        pytest.param(
            (MAKE, ADAM, TRAIN, *FREE, "print(locals())", *OTHER),
            id="who knows what is read",
        ),
    ],
)
def test_what_is_freed_or_needed(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, program(*body)) == []


ROUND = ("for loader in loaders:", f"    {MAKE}", f"    {ADAM}", f"    {TRAIN}")


@pytest.mark.parametrize(
    ("body", "number"),
    [
        pytest.param((*ROUND, "    del net", "    torch.cuda.empty_cache()"), 1, id="the next round makes one"),
        pytest.param(
            (
                "for loader in loaders:",
                "    net = consume(loader).train()",
                f"    {ADAM}",
                f"    {TRAIN}",
                "    del net",
                "    gc.collect()",
            ),
            1,
            id="something makes the next one",
        ),
        pytest.param((*ROUND, "    del net, optimizer", "    torch.cuda.empty_cache()"), 0, id="both"),
        pytest.param((*ROUND, "    del net", "    gc.collect()", "    break"), 0, id="there is no next round"),
        pytest.param((*ROUND, "    del net", "    gc.collect()", "print(optimizer)"), 0, id="read behind the loop"),
        pytest.param(
            (
                "optimizer = None",
                "for loader in loaders:",
                "    print(optimizer)",
                *ROUND[1:],
                "    del net",
                "    gc.collect()",
            ),
            0,
            id="read by the next round",
        ),
        pytest.param(
            ("for loader in loaders:", "    optimizer = None", *ROUND[1:], "    del net", "    gc.collect()"),
            0,
            id="the next round lets go of it first",
        ),
    ],
)
def test_the_next_round(tmp_path: Path, body: tuple[str, ...], number: int) -> None:
    assert [each.severity for each in found(tmp_path, program(*body))] == ["note"] * number


LOAD = "checkpoint = torch.load(path)"


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ((LOAD, "state = checkpoint['state_dict']"), 1),
        ((LOAD, "state = {k[7:]: v for k, v in checkpoint['model'].items()}"), 1),
        ((LOAD, "state = {k[7:]: v.cpu() for k, v in checkpoint['model'].items()}"), 0),
        ((LOAD, "state = checkpoint['epoch']"), 0),
        ((LOAD, "state = checkpoint['best_model_loss']"), 0),
        (("checkpoint = torch.load(path, map_location='cpu')", "state = checkpoint['state_dict']"), 0),
        (("checkpoint = torch.load(path, map_location=lambda s, l: s)", "state = checkpoint['state_dict']"), 0),
        (("checkpoint = consume(path)", "state = checkpoint['state_dict']"), 0),
    ],
)
def test_a_part_of_a_checkpoint(tmp_path: Path, body: tuple[str, ...], number: int) -> None:
    made = ("other = Net().cuda()", *body, "other.load_state_dict(state)", "del checkpoint", "torch.cuda.empty_cache()")
    code = program(*made, "fit(other, optim.SGD(other.parameters(), lr=0.1), loader)")
    assert [each.severity for each in found(tmp_path, code)] == ["note"] * number


def test_a_variable_of_the_module(tmp_path: Path) -> None:
    body = (MAKE, ADAM, TRAIN, *FREE, *OTHER)
    script = PROGRAM.partition("def run")[0] + "loader, device = consume()\n" + "\n".join(body) + "\n"
    assert [each.fix for each in found(tmp_path, script)] == [None]
    assert found(tmp_path, script + "\n\ndef again():\n    optimizer.step()\n") == []


def test_on_the_host(tmp_path: Path) -> None:
    code = program("net = Net()", ADAM, "del net", "gc.collect()", "other = Net()", "other(loader)")
    code = code.replace(".cuda()", "").replace("device", "rate")
    assert found(tmp_path, code) == []


def test_a_loss_of_two_models_tells_of_neither(tmp_path: Path) -> None:
    """One of them may be frozen, so that no graph leads to its parameters."""
    made = ("net, teacher = Net().cuda(), Net().cuda()", "loss = F.mse_loss(net(loader), teacher(loader))")
    code = program(*made, "loss.backward()", "del teacher", "torch.cuda.empty_cache()", *OTHER)
    assert found(tmp_path, code) == []
    assert len(found(tmp_path, code.replace("teacher(loader)", "loader").replace("del teacher", "del net"))) == 1


def test_a_holder_is_told_of_once(tmp_path: Path) -> None:
    made = ("net, other = Net().cuda(), Net().cuda()", "print(net.training, other.training)", "nets = [net, other]")
    code = program(*made, "consume(nets)", "del net", "del other", "torch.cuda.empty_cache()", OTHER[0], OTHER[1])
    assert len(found(tmp_path, code)) == 1


def test_bound_anew_by_the_rounds_of_an_inner_loop(tmp_path: Path) -> None:
    rounds = (
        "for loader in loaders:",
        f"    {MAKE}",
        f"    {ADAM}",
        "    for x, y in loader:",
        "        optimizer.zero_grad()",
        "        loss = F.mse_loss(net(x.cuda()), y.cuda())",
        "        loss.backward()",
        "        optimizer.step()",
        "    del net, optimizer",
        "    torch.cuda.empty_cache()",
    )
    (finding,) = found(tmp_path, program(*rounds))
    assert "`loss`" in finding.message
    assert finding.severity == "note"
    assert found(tmp_path, program(*rounds[:-2], "    del net, optimizer, loss", rounds[-1])) == []


def test_bound_on_one_side_of_a_test(tmp_path: Path) -> None:
    code = program(MAKE, "if path:", f"    {ADAM}", *FREE, *OTHER)
    assert [(each.severity, each.confidence) for each in found(tmp_path, code)] == [("note", "medium")]
