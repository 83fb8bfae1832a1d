"""``kept[i].append(v[i])``: an inner loop that goes over the members grows none of them, the loop around it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

ROLLOUT = """
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 8))

    def forward(self, states):
        return self.layers(states)


def {name}(env, steps, agents, names):
    critic = Critic().cuda()
    {made}
    for _ in range(steps):
        states = env.observe()
        values = critic(torch.as_tensor(states).cuda())
        env.step(values.argmax().item())
        for i in range(agents):
            {kept}
    return {given}
"""

LISTS = "kept = [[] for _ in range(agents)]"
TABLES = "kept = [{'value': [], 'state': []} for _ in range(agents)]"


@pytest.mark.parametrize(
    ("name", "made", "kept", "given", "found"),
    [
        ("collect", LISTS, "kept[i].append(values[i])", "[sum(one).item() for one in kept]", True),
        ("create_trajectories", LISTS, "kept[i].append(values[i])", "[sum(one).item() for one in kept]", True),
        ("collect", TABLES, "kept[i]['value'].append(values[i])", "[sum(one['value']).item() for one in kept]", True),
        ("collect", LISTS, "kept[i].append(values[i].detach().cpu())", "[sum(one).item() for one in kept]", False),
        ("collect", LISTS, "kept[i].append(values[i].item())", "[sum(one) for one in kept]", False),
        # made before both loops: no round records another graph
        (
            "collect",
            "kept = [[] for _ in range(agents)]\n    one = critic.layers[0].weight.sum(1)",
            "kept[i].append(one[i])",
            "[sum(one).item() for one in kept]",
            False,
        ),
        # a function that builds layers
        ("create_heads", "kept = [[] for _ in range(agents)]", "kept[i].append(nn.Linear(8, 8))", "kept", False),
    ],
)
def test_members_grow_with_the_loop_around(
    tmp_path: Path, name: str, made: str, kept: str, given: str, found: bool
) -> None:
    source = ROLLOUT.format(name=name, made=made, kept=kept, given=given)
    assert ("MEM102" in codes_in(tmp_path, source)) is found
