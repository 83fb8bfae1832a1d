"""Losses of several batches that are summed for one backward: which sums a backward for each batch would replace."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import math
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import grad


def train(model: nn.Module, loader, optimizer, criterion, weights, batches):
    {before}
    for index, (x, y) in enumerate(batches):
        {body}
    optimizer.zero_grad()
    {after}
    optimizer.step()
"""


def found(tmp_path: Path, source: str) -> list[tuple[int, str]]:
    """The lines and severities of the findings of MEM304."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(source)
    result = memlint.lint([tmp_path], isolated=True, preview=True)
    assert not result.failures
    return [(each.line, each.severity) for each in result.findings if each.code == "MEM304"]


def program(body: str, after: str, before: str = "total = 0.0") -> str:
    return PROGRAM.format(
        before=before.replace("\n", "\n    "),
        body=body.replace("\n", "\n        "),
        after=after.replace("\n", "\n    "),
    )


ADD = "total += criterion(model(x.cuda()), y.cuda())"
COLLECT = "losses.append(criterion(model(x.cuda()), y.cuda()))"


@pytest.mark.parametrize(
    "after",
    [
        "total.backward()",
        "(total / len(batches)).backward()",
        "loss = total / len(batches) + 0.1 * penalty(model)\nloss.backward()",
        "total *= 0.5\nprint(math.exp(total.item()))\ntotal.backward()",
        "best = torch.exp(total)\nprint(best)\ntotal.backward()",
        "scaler.scale(total.mean()).backward()",
        "learn(total)",
        "averaged({'loss': total}, 4)['loss'].backward()",
    ],
)
def test_a_sum_whose_parts_could_have_their_own_backward(tmp_path: Path, after: str) -> None:
    helpers = """

def learn(objective):
    objective.backward()


def averaged(losses, count):
    return {name: value / count for name, value in losses.items()}
"""
    assert [severity for _, severity in found(tmp_path, program(ADD, after) + helpers)] == ["warning"]


@pytest.mark.parametrize(
    "after",
    [
        pytest.param("torch.exp(total).backward()", id="a function of the sum"),
        pytest.param("loss = total ** 2\nloss.backward()", id="a power of it"),
        pytest.param("loss = total * total\nloss.backward()", id="a product with itself"),
        pytest.param("loss = 1 / total\nloss.backward()", id="a quotient by it"),
        pytest.param("total /= total.norm()\ntotal.backward()", id="normalised by itself"),
        pytest.param("squared(total).backward()", id="a helper that is not linear"),
        pytest.param("learn(total)", id="a helper that trains by a function of it"),
        pytest.param("combined(total).backward()", id="an unknown function"),
        pytest.param(
            "grads = grad(total, list(model.parameters()), create_graph=True)\n"
            "loss = total + sum(one.norm() for one in grads)\nloss.backward()",
            id="gradients of it with a graph of their own",
        ),
    ],
)
def test_a_backward_that_needs_the_whole_sum(tmp_path: Path, after: str) -> None:
    helpers = """

def squared(loss):
    return loss.pow(2)


def learn(objective):
    loss = torch.sqrt(objective)
    loss.backward()
"""
    imports = "from lossbook import combined\n"
    assert found(tmp_path, imports + program(ADD, after) + helpers) == []


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("torch.stack(losses).mean().backward()", ["warning"]),
        ("sum(losses).backward()", ["warning"]),
        ("total = 0\nfor loss in losses:\n    total = total + loss\ntotal.backward()", ["warning"]),
        ("torch.stack(losses).var().backward()", []),
        ("torch.stack(losses).logsumexp(0).backward()", []),
        ("torch.stack(losses).max().backward()", []),
    ],
)
def test_a_list_of_losses(tmp_path: Path, after: str, expected: list[str]) -> None:
    assert [severity for _, severity in found(tmp_path, program(COLLECT, after, "losses = []"))] == expected


def test_outputs_that_are_collected_for_the_same_backward(tmp_path: Path) -> None:
    """A backward for each loss would free the graphs of the outputs."""
    body = "output = model(x.cuda())\ntotal += criterion(output, y.cuda())\nkept.append(output)"
    after = "(total + torch.cat(kept).std()).backward()"
    assert found(tmp_path, program(body, after, "total, kept = 0.0, []")) == []


def test_losses_of_steps_that_are_collected_within_a_batch(tmp_path: Path) -> None:
    body = (
        "steps = []\nfor part in x.cuda().unbind():\n    steps.append(criterion(model(part), y.cuda()))\n"
        "losses.append(torch.stack(steps).sum())"
    )
    source = program(body, "torch.stack(losses).mean().backward()", "losses = []")
    assert len(found(tmp_path, source)) == 1


def test_outputs_that_are_collected_for_a_metric(tmp_path: Path) -> None:
    body = "output = model(x.cuda())\ntotal += criterion(output, y.cuda())\nkept.append(output.detach())"
    after = "print(torch.cat(kept).std())\ntotal.backward()"
    assert [severity for _, severity in found(tmp_path, program(body, after, "total, kept = 0.0, []"))] == ["warning"]


def test_gradients_that_are_collected_for_the_same_backward(tmp_path: Path) -> None:
    body = (
        "loss = criterion(model(x.cuda()), y.cuda())\ntotal += loss\n"
        "grads.append(grad(loss, list(model.parameters()), create_graph=True)[0])"
    )
    assert found(tmp_path, program(body, "(total + torch.stack(grads).var()).backward()", "total, grads = 0, []")) == []


def test_two_sums_of_one_loop_are_one_finding(tmp_path: Path) -> None:
    body = "output = model(x.cuda())\ntotal += criterion(output, y.cuda())\ntotal += F.l1_loss(output, y.cuda())"
    assert len(found(tmp_path, program(body, "total.backward()"))) == 1


METHOD = """
import torch
from torch import nn


class Agent:
    def __init__(self, policy, clip):
        self.policy: nn.Module = policy.cuda()
        self.clip = clip
        self.optimizer = torch.optim.Adam(self.policy.parameters())

    def look(self, states):
        self.seen = self.policy.encode(states.cuda())

    def update(self, memories):
        total = 0.0
        for index in range(len(memories)):
            out = self.policy({given})
            total += ((out - {target}) * self.clip).pow(2).mean()
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()


def main(agent: Agent, loader):
    for memories in loader:
        agent.look(memories)
        agent.update(memories)
"""


@pytest.mark.parametrize(
    ("given", "target", "expected"),
    [
        ("memories[index].cuda()", "memories[index].mean()", ["warning"]),
        ("memories[index].cuda()", "self.seen[index]", []),  # may be parts of one forward
        ("self.seen[index]", "memories[index].mean()", []),
    ],
)
def test_attributes_that_another_method_sets(tmp_path: Path, given: str, target: str, expected: list[str]) -> None:
    source = METHOD.format(given=given, target=target)
    assert [severity for _, severity in found(tmp_path, source)] == expected


FUNCTIONAL = """
import torch
import torch.nn.functional as F
from torch import nn


class Learner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 3, 3, 3))
        self.head = nn.Parameter(torch.randn(width, 64))

    def forward(self, x, vars=None):
        if vars is None:
            vars = [self.weight, self.head]
        x = F.relu(F.conv2d(x, vars[0]))
        return F.linear(x.mean((2, 3)), vars[1])


class Meta(nn.Module):
    def __init__(self, width, rate):
        super().__init__()
        self.rate = rate
        self.net = Learner(width).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def {name}(self, x, y, xq, yq):
        total = 0
        {before}
        for i in range(x.size(0)):
            loss = F.cross_entropy(self.net(x[i]), y[i])
            grads = torch.autograd.grad(loss, self.net.parameters())
            fast = [p - self.rate * g for p, g in zip(self.net.parameters(), grads)]
            total += F.cross_entropy({output}, yq[i])
        self.optimizer.zero_grad()
        (total / x.size(0)).backward()
        self.optimizer.step()


def main(meta: Meta, loader):
    for x, y, xq, yq in loader:
        meta(x.cuda(), y.cuda(), xq.cuda(), yq.cuda())
"""


def test_a_small_network_of_functions_is_a_note(tmp_path: Path) -> None:
    source = FUNCTIONAL.format(name="forward", before="pass", output="self.net(xq[i], fast)")
    source = source.replace("torch.randn(64, 3, 3, 3)", "torch.randn(64, 32)").replace(
        "torch.randn(width, 64)", "torch.randn(8, 64)"
    )
    source = source.replace("F.conv2d(x, vars[0])", "F.linear(x, vars[0])").replace("x.mean((2, 3))", "x")
    assert [severity for _, severity in found(tmp_path, source)] == ["note"]


@pytest.mark.parametrize("name", ["forward", "step"])
@pytest.mark.parametrize(
    ("before", "output", "expected"),
    [
        ("count = x.size(0)", "self.net(xq[i], fast)", ["warning"]),
        ("out = self.net(xq.flatten(0, 1))", "out[i : i + 5]", []),
    ],
)
def test_tasks_of_a_network_of_functions(
    tmp_path: Path, name: str, before: str, output: str, expected: list[str]
) -> None:
    source = FUNCTIONAL.format(name=name, before=before, output=output)
    source = source if name == "forward" else source.replace("meta(x", "meta.step(x")
    assert [severity for _, severity in found(tmp_path, source)] == expected


UPDATES = """
from collections import OrderedDict
import torch
import torch.nn.functional as F
from torch import nn


def adapt(args, net, x, y, query, labels, mode):
    weights = OrderedDict({})
    for k, v in net.named_parameters():
        weights[k] = v.clone()
    net.eval()
    create_graph = (mode == "train") and not args.first_order
    for step in range(args.steps):
        loss = F.cross_entropy(net(x, weights), y)
        grads = torch.autograd.grad(loss, weights.values(), create_graph=create_graph)
        for k, g in zip(weights.keys(), grads):
            weights[k] = weights[k] - args.rate * g
    net.train()
    loss = F.cross_entropy(net(query, weights), labels)
    return torch.autograd.grad(loss, net.parameters())


def train(args, net, loader, optimizer):
    for x, y, query, labels in loader:
        total = [0.0 for p in net.parameters()]
        for i in range(args.batch_size):
            grads = adapt(args, net, x[i].cuda(), y[i].cuda(), query[i].cuda(), labels[i].cuda(), mode="train")
            for j in range(len(total)):
                total[j] += grads[j].detach()
        optimizer.zero_grad()
        for p, g in zip(net.parameters(), total):
            p.grad = g / args.batch_size
        optimizer.step()


def train_here(net: nn.Module, loader, optimizer, rate):
    for tasks, x, y in loader:
        context = torch.zeros(8, requires_grad=True).cuda()
        for support, labels in tasks:
            loss = F.cross_entropy(net(support.cuda(), context), labels.cuda())
            context = context - rate * torch.autograd.grad(loss, context, create_graph=True)[0]
        optimizer.zero_grad()
        F.cross_entropy(net(x.cuda(), context), y.cuda()).backward()
        optimizer.step()
"""


def test_weights_that_each_step_updates_are_no_sum(tmp_path: Path) -> None:
    assert found(tmp_path, UPDATES) == []


STEPS = """
import torch
import torch.nn.functional as F
from torch import nn


def train(model: nn.Module, cell: nn.Module, loader, optimizer, rate, steps):
    for tasks in loader:
        losses = [0 for _ in range(steps + 1)]
        state = torch.zeros(8, 64).cuda()
        for x, y in tasks:
            {begin}
            for step in range(steps):
                {step}
                losses[step + 1] += {loss}
        optimizer.zero_grad()
        (losses[-1] / len(tasks)).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("begin", "step", "loss", "expected"),
    [
        pytest.param(
            "fast = list(model.parameters())",
            "grads = torch.autograd.grad(F.cross_entropy(model(x.cuda(), fast), y.cuda()), fast)\n"
            "                fast = [p - rate * g for p, g in zip(fast, grads)]",
            "F.cross_entropy(model(x.cuda(), fast), y.cuda())",
            ["warning"],
            id="steps within a task",
        ),
        pytest.param(
            "state = torch.zeros(8, 64).cuda()",
            "state = cell(x.cuda(), state)",
            "F.cross_entropy(model(state), y.cuda())",
            ["warning"],
            id="a sequence of its own",
        ),
        pytest.param(
            "count = step = 0",
            "state = cell(x.cuda(), state)",
            "F.cross_entropy(model(state), y.cuda())",
            [],
            id="a state that all sequences share",
        ),
    ],
)
def test_steps_that_depend_on_one_another(
    tmp_path: Path, begin: str, step: str, loss: str, expected: list[str]
) -> None:
    source = STEPS.format(begin=begin, step=step, loss=loss)
    assert [severity for _, severity in found(tmp_path, source)] == expected


SMALL = """
import torch
import torch.nn.functional as F
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, {width})

    def forward(self, x):
        return self.layer(x)


def train(loader):
    heads = [Head().cuda() for _ in range(4)]
    optimizer = torch.optim.Adam([p for head in heads for p in head.parameters()])
    for batches in loader:
        total = 0.0
        for head, (x, y) in zip(heads, batches):
            total += F.cross_entropy(head(x.cuda()), y.cuda())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("width", "expected"), [("8", ["note"]), ("64 * 4096", ["warning"])])
def test_a_small_network_is_a_note(tmp_path: Path, width: str, expected: list[str]) -> None:
    assert [severity for _, severity in found(tmp_path, SMALL.format(width=width))] == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("out = model(x.cuda())\ntotal = total + F.l1_loss(out, y.cuda())", ["warning"]),
        ("out = model(x.cuda())\ntotal = total + F.l1_loss(out, last)\nlast = out", []),
        ("out = model(torch.cat((x.cuda(), last), -1))\ntotal = total + F.l1_loss(out, y.cuda())\nlast = out", []),
    ],
)
def test_a_term_of_an_earlier_iteration(tmp_path: Path, body: str, expected: list[str]) -> None:
    source = program(body, "total.backward()", "total, last = 0.0, torch.zeros(8, 8).cuda()")
    assert [severity for _, severity in found(tmp_path, source)] == expected
