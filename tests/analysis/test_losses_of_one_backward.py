"""Sums of losses (MEM304) whose graphs one backward needs together, beside twins that a backward for each would do."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call
from einops import reduce
from spikingjelly.activation_based import functional


def worst(losses):
    return torch.stack(losses).max()


def spread(losses):
    values = [loss.item() for loss in losses]
    return [value / max(values) for value in values]


def descend(losses):
    finish(losses)


def finish(losses):
    sum(sorted(losses, key=float)[:2]).backward()


def train(model: nn.Module, encoder, parts, optimizer, env, weights, code, alpha):
    {before}
    for index, (x, y) in enumerate(parts):
        {body}
    {after}
    optimizer.step()
    optimizer.zero_grad()
"""
LOSS = "F.cross_entropy(model(x.cuda()), y.cuda())"


def found(folder: Path, before: str, body: str, after: str) -> list[str]:
    """The severities of the findings of MEM304 in a step."""
    source = PROGRAM.format(
        before=before.replace("\n", "\n    "),
        body=body.replace("\n", "\n        "),
        after=after.replace("\n", "\n    "),
    )
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(source)
    result = memlint.lint([folder], isolated=True, preview=True)
    assert not result.failures
    return [each.severity for each in result.findings if each.code == "MEM304"]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("sum(losses).backward()", True),
        ("sum(w * loss for w, loss in zip(weights, losses)).backward()", True),
        ("(losses[0] + 0.5 * losses[1]).backward()", True),
        ("(torch.stack(losses) * torch.tensor([0.1, 0.9]).cuda()).sum().backward()", True),
        ("print(max(loss.item() for loss in losses))\nsum(losses).backward()", True),
        ("loss = sum(losses)\nif torch.isfinite(loss):\n    loss.backward()", True),
        ("loss = None\nfor one in losses:\n    loss = one if loss is None else loss + one\nloss.backward()", True),
        # a selection that all losses decide
        ("max(losses).backward()", False),
        ("reduce(torch.stack(losses), 'n ->', 'max').backward()", False),
        ("losses[int(torch.stack(losses).argmax())].backward()", False),
        ("sum(sorted(losses, key=lambda loss: loss.item())[-2:]).backward()", False),
        ("losses.sort(key=float)\nsum(losses[:2]).backward()", False),
        ("while max(loss.item() for loss in losses) > 9:\n    losses.pop()\nsum(losses).backward()", False),
        ("losses.remove(max(losses))\nsum(losses).backward()", False),
        (
            "values = [loss.item() for loss in losses]\nlosses.pop(values.index(max(values)))\nsum(losses).backward()",
            False,
        ),
        ("mean = sum(losses) / len(losses)\nsum(loss for loss in losses if loss > mean).backward()", False),
        ("loss = sum(losses)\nif loss.item() > 5:\n    loss = 0.1 * loss\nloss.backward()", False),
        ("stacked = torch.stack(losses)\nstacked[stacked > stacked.mean()].mean().backward()", False),
        ("stacked = torch.stack(losses)\nstacked.gather(0, stacked.topk(2).indices).sum().backward()", False),
        # weights that all losses decide
        ("w = torch.stack(losses).detach().softmax(0)\n(w * torch.stack(losses)).sum().backward()", False),
        ("loss = sum(losses)\n(loss / loss.detach()).backward()", False),
        ("w = torch.tensor([loss.item() for loss in losses])\n(w * torch.stack(losses)).sum().backward()", False),
        ("sum(w * loss for w, loss in zip(spread(losses), losses)).backward()", False),
        (
            "loss = 0\nfor one in losses:\n    loss = loss + one * (one.item() / losses[0].item())\nloss.backward()",
            False,
        ),
        # helpers, and functions within the function
        ("worst(losses).backward()", False),
        ("descend(losses)", False),
        ("def step():\n    torch.stack(losses).amax().backward()\nstep()", False),
        ("def total():\n    return sum(losses)\ntotal().backward()", True),
        # a backward, or one of two, that the sum decides
        ("loss = sum(losses)\nif loss.item() < 9:\n    optimizer.zero_grad()\n    loss.backward()", False),
        ("loss = sum(losses)\nif loss > 9:\n    loss.backward()\nelse:\n    (-loss).backward()", False),
        ("loss = sum(losses)\nif weights is not None:\n    loss.backward()\nelse:\n    (0.5 * loss).backward()", True),
        # graphs that are kept for a second backward
        ("sum(losses).backward(retain_graph=True)", False),
    ],
)
def test_what_the_backward_needs_of_a_list_of_losses(tmp_path: Path, after: str, expected: bool) -> None:
    assert found(tmp_path, "losses = []", f"losses.append({LOSS})", after) == ["warning"] * expected


@pytest.mark.parametrize(
    ("before", "body", "after", "expected"),
    [
        pytest.param(
            "a = b = 0.0",
            "out = model(x.cuda())\na = a + F.l1_loss(out, y.cuda())\nb = b + out.pow(2).mean()",
            "(a + 0.1 * b).backward()",
            True,
            id="two sums that are added",
        ),
        pytest.param(
            "a = b = 0.0",
            "out = model(x.cuda())\na = a + F.l1_loss(out, y.cuda())\nb = b + out.pow(2).mean()",
            "(a / b).backward()",
            False,
            id="a ratio of two sums",
        ),
        pytest.param(
            "a = b = 0.0",
            "out = model(x.cuda())\na = a + F.l1_loss(out, y.cuda())\nb = b + out.pow(2).mean()",
            "(a + torch.sqrt(b)).backward()",
            False,
            id="one of two sums is not used linearly",
        ),
        pytest.param(
            "total, count = 0.0, 0",
            f"total = total + {LOSS}\ncount += y.size(0)",
            "(total / count).backward()",
            True,
            id="a number of samples",
        ),
        pytest.param(
            "total, reward, state = 0.0, 0.0, env.reset()",
            "policy = torch.distributions.Categorical(logits=model(x.cuda()))\naction = policy.sample()\n"
            "total = total + policy.log_prob(action)\nreward += env.step(action.item())[1]",
            "(-total * reward).backward()",
            False,
            id="a return of the whole episode",
        ),
        pytest.param(
            "losses, errors = [], []",
            "out = model(x.cuda())\nlosses.append(F.cross_entropy(out, y.cuda()))\n"
            "errors.append((out.argmax(1) != y.cuda()).float().mean().item())",
            "w = torch.tensor(errors).softmax(0)\n(w * torch.stack(losses)).sum().backward()",
            False,
            id="weights of what the loop collects",
        ),
        pytest.param(
            "total, kept = 0.0, {}",
            "kept[index] = model(x.cuda())\ntotal = total + F.cross_entropy(kept[index], y.cuda())",
            "(total + F.mse_loss(kept[0], kept[1])).backward()",
            False,
            id="outputs that are compared later",
        ),
    ],
)
def test_what_a_loop_computes_beside_the_sum(
    tmp_path: Path, before: str, body: str, after: str, expected: bool
) -> None:
    assert found(tmp_path, before, body, after) == ["warning"] * expected


@pytest.mark.parametrize(
    ("before", "body", "expected"),
    [
        pytest.param("pass", "total += torch.exp(-alpha[index]) * {loss} + alpha[index]", True, id="a weight each"),
        pytest.param("w = torch.softmax(alpha, 0)", "total += w[index] * {loss}", False, id="weights made before"),
        pytest.param("s = alpha.exp()", "total += F.l1_loss(model(x.cuda()) * s, y.cuda())", False, id="a scale"),
        pytest.param(
            "with torch.no_grad():\n    z = encoder(weights.cuda())",
            "total += F.l1_loss(model(z, x.cuda()), y.cuda())",
            True,
            id="frozen features",
        ),
        pytest.param(
            "z = encoder(weights.cuda())",
            "total += F.l1_loss(model(z, x.cuda()), y.cuda())",
            False,
            id="features of an encoder",
        ),
        pytest.param("pass", "total += F.l1_loss(model(x.cuda(), code), y.cuda())", False, id="an argument"),
        pytest.param("code = code.cuda()", "total += F.l1_loss(model(x.cuda(), code), y.cuda())", True, id="its move"),
        pytest.param(
            "masked = {{name: p * torch.sigmoid(alpha[name]) for name, p in model.named_parameters()}}",
            "total += F.cross_entropy(functional_call(model, masked, x.cuda()), y.cuda())",
            False,
            id="weights under a mask",
        ),
        pytest.param(
            "merged = {{name: weights[name] + alpha * code[name] for name in weights}}",
            "total += F.cross_entropy(functional_call(model, merged, x.cuda()), y.cuda())",
            False,
            id="weights that are merged",
        ),
        pytest.param(
            "merged = [weight / sum(weights) for weight in weights]\nprint(merged)",
            "total += {loss}",
            True,
            id="numbers that the loop does not use",
        ),
        pytest.param(
            "loss = F.cross_entropy(model(code.cuda()), code)\n"
            "grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)\n"
            "fast = {{name: p - 0.1 * g for (name, p), g in zip(model.named_parameters(), grads)}}",
            "total += F.cross_entropy(functional_call(model, fast, x.cuda()), y.cuda())",
            False,
            id="weights of one inner step",
        ),
        pytest.param(
            "last = None",
            "out = model(x.cuda())\ntotal += F.l1_loss(out, y.cuda())\n"
            "if last is not None:\n    total += F.mse_loss(out, last)\nlast = out",
            False,
            id="the previous output",
        ),
        pytest.param(
            "last = None",
            "out = model(x.cuda(), last)\ntotal += F.l1_loss(out, y.cuda())\nlast = out.detach()",
            True,
            id="the previous output, detached",
        ),
        pytest.param(
            "kept = []",
            "kept.append(model(x.cuda()))\nif index:\n    total += F.mse_loss(kept[index], kept[index - 1])\n"
            "total += F.l1_loss(kept[index], y.cuda())",
            False,
            id="an earlier member of a list",
        ),
        pytest.param("model.init_hidden(8)", "total += {loss}", False, id="a model whose state is set anew"),
        pytest.param("functional.reset_net(model)", "total += {loss}", False, id="by a function"),
        pytest.param("pass", "loss = {loss}\nmodel.adapt(loss)\ntotal += {loss}", False, id="a model that is adapted"),
        pytest.param("pass", "loss = {loss}\nenv.step(loss)\ntotal += {loss}", False, id="by an optimizer"),
        pytest.param(
            "pass",
            "learner = model.clone()\nlearner.adapt(F.l1_loss(learner(x.cuda()), y.cuda()))\n"
            "total += F.l1_loss(learner(x.cuda()), y.cuda())",
            True,
            id="a copy of it",
        ),
        pytest.param("model.train()", "total += {loss}", True, id="the mode of a model"),
        pytest.param("pass", "{loss}.backward()\ntotal += {loss}", False, id="gradients of another backward"),
        pytest.param("pass", "descend([{loss}])\ntotal += {loss}", False, id="gradients of a backward in a helper"),
        pytest.param(
            "pass",
            "x = x.cuda().requires_grad_(True)\n{loss}.backward(inputs=[x])\n"
            "total += F.l1_loss(model(x.detach() + x.grad.sign()), y.cuda())",
            True,
            id="a backward that adds to no parameter",
        ),
        pytest.param(
            "pass",
            "x = x.cuda().requires_grad_(True)\ng, = torch.autograd.grad({loss}, x)\n"
            "total += F.l1_loss(model(x.detach() + g.sign()), y.cuda())",
            True,
            id="gradients that are not added",
        ),
        pytest.param(
            "pass",
            "action = model(env.observation())\ntotal += env.cost(action)\nenv.apply(action)",
            False,
            id="an environment that is differentiated",
        ),
    ],
)
def test_what_the_iterations_share(tmp_path: Path, before: str, body: str, expected: bool) -> None:
    before = f"total = 0.0\n{before.format()}"
    assert found(tmp_path, before, body.format(loss=LOSS), "total.backward()") == ["warning"] * expected


METHODS = """
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, critic):
        self.net, self.critic = net.cuda(), critic.cuda()
        self.optimizer = torch.optim.Adam(self.critic.parameters())
        self.memory = []

    def look(self, x):
        {look}

    def update(self, targets):
        total = 0.0
        for given, target in zip(self.memory, targets):
            total = total + F.mse_loss(self.critic(given), target.cuda())
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()


def heads_step(heads, features, targets, optimizer):
    total = 0.0
    for head, target in zip(heads, targets):
        total = total + F.mse_loss(head(features), target.cuda())
    optimizer.zero_grad()
    total.backward()
    optimizer.step()


def train(trunk, heads, loader, optimizer):
    for x, targets in loader:
        heads_step(heads, {features}, targets, optimizer)
"""


@pytest.mark.parametrize(
    ("look", "features", "expected"),
    [
        ("self.memory.append(self.net(x.cuda()))", "trunk(x.cuda())", 0),
        ("self.memory[0] = self.net(x.cuda())", "trunk(x.cuda())", 0),
        ("return self.net(x.cuda())", "trunk(x.cuda())", 1),
        ("self.memory.append(self.net(x.cuda()))", "x.cuda()", 1),
    ],
)
def test_values_of_callers_and_other_methods(tmp_path: Path, look: str, features: str, expected: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(METHODS.format(look=look, features=features))
    result = memlint.lint([tmp_path], isolated=True, preview=True)
    assert len([each for each in result.findings if each.code == "MEM304"]) == expected


RETURNED = """
import torch
import torch.nn.functional as F


def total_loss(model, parts):
    total = 0.0
    for x, y in parts:
        total = total + F.cross_entropy(model(x.cuda()), y.cuda())
    return total


def all_losses(model, parts):
    losses = []
    for x, y in parts:
        losses.append(F.cross_entropy(model(x.cuda()), y.cuda()))
    return losses


def perceptual(net, fakes, reals):
    total = 0.0
    for fake, real in zip(fakes, reals):
        total = total + F.l1_loss(net(fake), net(real.cuda()))
    return total


def train(model, net, loader, optimizer):
    for x, parts in loader:
        fakes = model(x.cuda()).chunk(4)
        {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def other(model, net, parts, optimizer):
    {other}
"""
#: another caller, which learns by the sum as well
LEARNS = "loss = {}\n    loss.backward()\n    optimizer.step()"


@pytest.mark.parametrize(
    ("loss", "other", "expected"),
    [
        ("loss = total_loss(model, parts) / len(parts)", "pass", 1),
        ("loss = total_loss(model, parts).log()", "pass", 0),
        ("loss = total_loss(model, parts)", LEARNS.format("total_loss(model, parts) * 2"), 1),
        ("loss = total_loss(model, parts)", LEARNS.format("total_loss(model, parts) ** 2"), 0),
        ("loss = total_loss(model, parts)", "with torch.no_grad():\n        return total_loss(model, parts).sqrt()", 1),
        ("loss = torch.stack(all_losses(model, parts)).mean()", "pass", 1),
        ("loss = torch.stack(all_losses(model, parts)).amax()", "pass", 0),
        ("loss = perceptual(net, fakes, parts)", "pass", 0),  # one forward of the caller made all
    ],
)
def test_a_sum_that_is_returned(tmp_path: Path, loss: str, other: str, expected: int) -> None:
    """The backward is the caller's: what each of them computes from the sum must be linear."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(RETURNED.format(loss=loss, other=other))
    result = memlint.lint([tmp_path], isolated=True, preview=True)
    assert len([each for each in result.findings if each.code == "MEM304"]) == expected


def test_calls_within_calls_are_followed_once_each(tmp_path: Path) -> None:
    nested = "sum(losses)"
    for _ in range(40):
        nested = f"same({nested})"
    after = f"def same(loss):\n    return loss\n{nested}.backward()"
    assert found(tmp_path, "losses = []", f"losses.append({LOSS})", after) == ["warning"]
