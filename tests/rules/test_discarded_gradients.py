"""MEM204 is said where the gradients of a network are surely thrown away, and of nothing that may use them."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import findings

#: a generator, a discriminator, and a step of each, in parts that a case replaces
PARTS = {
    "imports": "import itertools\n\nimport torch\nimport torch.nn as nn\n",
    "top": "",
    "head": "def train(loader, every):",
    "g": "g = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 784)).cuda()",
    "d": "d = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 1)).cuda()",
    "opt_g": "opt_g = torch.optim.Adam(g.parameters(), lr=1e-4)",
    "opt_d": "opt_d = torch.optim.Adam(d.parameters(), lr=1e-4)",
    "loop": "for step, (x, _) in enumerate(loader):",
    "clear_d": "opt_d.zero_grad()",
    "fake": "fake = g(torch.randn(len(x), 64).cuda())",
    "loss_d": "loss_d = d(fake).mean() - d(x.cuda()).mean()",
    "back_d": "loss_d.backward()",
    "between": "",
    "step_d": "opt_d.step()",
    "clear_g": "opt_g.zero_grad()",
    "loss_g": "loss_g = -d(g(torch.randn(len(x), 64).cuda())).mean()",
    "back_g": "loss_g.backward()",
    "before_g": "",
    "step_g": "opt_g.step()",
    "end": "",
}
_DEEP = list(PARTS)[list(PARTS).index("clear_d") : -1]

REPORTED = {
    "as it is": {},
    "by the network's own zero_grad": {"clear_g": "g.zero_grad()"},
    "cleared at the end of the iteration": {
        "clear_d": "opt_d.zero_grad()\nopt_g.zero_grad()",
        "clear_g": "opt_g.zero_grad()",
    },
    "cleared before the step of the discriminator": {"between": "opt_g.zero_grad()", "clear_g": ""},
    "only every few steps": {
        "clear_g": "",
        "loss_g": "if step % every:\n    continue",
        "back_g": "opt_g.zero_grad()\nloss_g = -d(g(torch.randn(len(x), 64).cuda())).mean()\nloss_g.backward()",
    },
    "for the generator's step, too": {
        "back_d": "loss_d.backward(retain_graph=True)",
        "loss_g": "loss_g = -d(fake).mean()",
    },
    "a list of parameters": {"opt_g": "opt_g = torch.optim.SGD([{'params': g.parameters()}], lr=1e-4)"},
    "a filter of parameters": {
        "opt_g": "opt_g = torch.optim.SGD(filter(lambda p: p.requires_grad, g.parameters()), lr=1e-4)"
    },
    "in parallel": {"g": PARTS["g"] + "\ng = nn.DataParallel(g)"},
    "another name for the optimizer": {"opt_g": PARTS["opt_g"] + "\nother = opt_g", "clear_g": "other.zero_grad()"},
    "a schedule": {
        "opt_d": PARTS["opt_d"] + "\nplan = torch.optim.lr_scheduler.StepLR(opt_d, 10)",
        "between": "plan.step()",
    },
    "common settings": {
        "top": "class Sizes:\n    hidden = 512\n",
        "g": "sizes = Sizes()\n"
        "g = nn.Sequential(nn.Linear(64, sizes.hidden), nn.ReLU(), nn.Linear(sizes.hidden, 784)).cuda()",
        "d": "d = nn.Sequential(nn.Linear(784, sizes.hidden), nn.ReLU(), nn.Linear(sizes.hidden, 1)).cuda()",
    },
    "a helper that runs the backward and steps": {
        "top": "def update(optimizer, loss):\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n",
        "clear_d": "",
        "back_d": "",
        "step_d": "update(opt_d, loss_d)",
        "clear_g": "",
        "back_g": "",
        "step_g": "update(opt_g, loss_g)",
    },
    "a method of the network": {
        "top": "class G(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 784))\n\n"
        "    def decode(self, z):\n        return self.layers(z)\n",
        "g": "g = G().cuda()",
        "fake": "fake = g.decode(torch.randn(len(x), 64).cuda())",
        "loss_g": "loss_g = -d(g.decode(torch.randn(len(x), 64).cuda())).mean()",
    },
    "other code runs afterwards": {"end": "    yield step"},
    "a scaler": {
        "opt_d": PARTS["opt_d"] + "\nscaler = torch.cuda.amp.GradScaler()",
        "back_d": "scaler.scale(loss_d).backward()",
        "step_d": "scaler.step(opt_d)\nscaler.update()",
    },
    "the discriminator's gradients are clipped": {"between": "nn.utils.clip_grad_norm_(d.parameters(), 1.0)"},
    "clipped after the generator's own backward": {"before_g": "nn.utils.clip_grad_norm_(g.parameters(), 1.0)"},
    "a helper of the project that only saves": {
        "top": "def save(net):\n    torch.save(net.state_dict(), 'net.pt')\n",
        "between": "save(g)",
    },
    "a helper that clears": {
        "top": "def clear(*all_of):\n    pass\n\n\ndef clear_one(one):\n    one.zero_grad()\n",
        "clear_g": "clear_one(opt_g)",
    },
    "a helper that steps the other one": {"top": "def advance(one):\n    one.step()\n", "step_d": "advance(opt_d)"},
}

SILENT = {
    "detached": {"loss_d": "loss_d = d(fake.detach()).mean() - d(x.cuda()).mean()"},
    "by its data": {"loss_d": "loss_d = d(fake.data).mean() - d(x.cuda()).mean()"},
    "without grad mode": {"fake": "with torch.no_grad():\n    fake = g(torch.randn(len(x), 64).cuda())"},
    "not cleared": {"clear_g": ""},
    "cleared on one path": {"clear_g": "if step % every:\n    opt_g.zero_grad()"},
    "cleared after the step": {"clear_g": "", "step_g": "opt_g.step()\nopt_g.zero_grad()"},
    "both optimizers step": {"step_d": "opt_d.step()\nopt_g.step()"},
    "one optimizer for both": {
        "opt_d": "opt_d = torch.optim.Adam(itertools.chain(g.parameters(), d.parameters()), lr=1e-4)"
    },
    "an optimizer of unknown networks": {"opt_d": "opt_d = make_optimizer(g, d)"},
    "an optimizer from elsewhere": {"opt_d": "opt_d = library.optimizer()"},
    "a part of the generator is trained": {
        "opt_d": "opt_d = torch.optim.Adam([*d.parameters(), *g[2].parameters()], lr=1e-4)"
    },
    "an optimizer that gets more later": {
        "opt_d": PARTS["opt_d"] + "\nopt_d.add_param_group({'params': g.parameters()})"
    },
    "a common part": {
        "g": "body = nn.Linear(64, 512)\ng = nn.Sequential(body, nn.ReLU(), nn.Linear(512, 64)).cuda()",
        "d": "d = nn.Sequential(body, nn.ReLU(), nn.Linear(512, 1)).cuda()",
    },
    "one network in the other": {"d": "d = nn.Sequential(g, nn.ReLU(), nn.Linear(784, 1)).cuda()"},
    "the gradients are clipped": {"between": "nn.utils.clip_grad_norm_(g.parameters(), 1.0)"},
    "the gradients are read": {"between": "print(sum(p.grad.norm() for p in g.parameters()))"},
    "a helper reads them": {
        "top": "def show(net):\n    for p in net.parameters():\n        print(p.grad.norm())\n",
        "between": "show(g)",
    },
    "a helper that is not resolved": {"between": "library.log(g)"},
    "a helper that is not resolved gets the optimizer": {"between": "library.advance(opt_g)"},
    "a helper that steps": {"top": "def advance(one):\n    one.step()\n", "step_d": "advance(opt_d)\nadvance(opt_g)"},
    "a helper that runs the backward and does not clear": {
        "top": "def update(optimizer, loss):\n    loss.backward()\n    optimizer.step()\n",
        "back_d": "",
        "step_d": "update(opt_d, loss_d)",
        "clear_g": "",
        "back_g": "",
        "step_g": "update(opt_g, loss_g)",
    },
    "a closure": {"step_d": "opt_d.step(lambda: loss_d)"},
    "a hook": {"g": PARTS["g"] + "\ng[0].weight.register_hook(print)"},
    "gradients are watched": {"imports": PARTS["imports"] + "import wandb\n", "g": PARTS["g"] + "\nwandb.watch(g)"},
    "frozen meanwhile": {
        "fake": "g.requires_grad_(False)\n" + PARTS["fake"],
        "step_d": "opt_d.step()\ng.requires_grad_(True)",
    },
    "a flag freezes it": {"fake": "g.requires_grad_(step > 10)\n" + PARTS["fake"]},
    "differentiated with regard to the output": {
        "between": "",
        "loss_d": "score = d(fake)\n"
        "slope = torch.autograd.grad(score.sum(), fake, create_graph=True)[0]\n"
        "loss_d = score.mean() + slope.norm() - d(x.cuda()).mean()",
    },
    "the score is used again": {
        "loss_d": "score = d(fake).mean()\nloss_d = score - d(x.cuda()).mean()",
        "back_d": "loss_d.backward(retain_graph=True)",
        "loss_g": "loss_g = -score",
    },
    "gradients of the discriminator alone": {"back_d": "loss_d.backward(inputs=list(d.parameters()))"},
    "other code runs meanwhile": {"between": "yield loss_d.item()"},
    "an optimizer that is named like a meter": {"step_d": "opt_d.step()\nlibrary.parameter_optimizer.step()"},
    "nothing trains the discriminator": {"step_d": "", "opt_d": ""},
    "nothing trains the generator": {"clear_g": "g.zero_grad()", "step_g": ""},
    "gradients of several steps": {
        "clear_g": "if step % every == 0:\n    opt_g.zero_grad()",
        "step_g": "if step % every == every - 1:\n    opt_g.step()",
    },
}


def program(changes: dict[str, str]) -> str:
    parts = {**PARTS, **changes}
    indents = {name: 8 if name in _DEEP else 4 for name in ("g", "d", "opt_g", "opt_d", "loop", *_DEEP, "end")}
    lines = [parts["imports"], "", parts["top"], "", parts["head"]]
    for name, indent in indents.items():
        lines += [" " * indent + line for line in parts[name].splitlines()]
    return "\n".join(lines) + "\n"


def found(folder: Path, changes: dict[str, str]) -> list[str]:
    return [one.code for one in findings(folder, {"train.py": program(changes)}) if one.code == "MEM204"]


@pytest.mark.parametrize("case", REPORTED)
def test_gradients_that_are_thrown_away(case: str, tmp_path: Path) -> None:
    assert found(tmp_path, REPORTED[case]) == ["MEM204"]


@pytest.mark.parametrize("case", SILENT)
def test_gradients_that_may_be_used(case: str, tmp_path: Path) -> None:
    assert found(tmp_path, SILENT[case]) == []
