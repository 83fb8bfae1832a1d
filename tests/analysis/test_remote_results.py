"""What another process gets has no graph: results of remote functions, and of the methods of remote classes."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import memlint

_CODE = """
    import functools
    import ray
    import torch
    from ray import remote
    from torch import nn


    class RewardModel(nn.Module):
        def __init__(self, path):
            super().__init__()
            self.head = nn.Linear(3, 4)

        def forward(self, x):
            return self.head(x)


    class Base:
        def setup(self, strategy):
            self.strategy = strategy

        def again(self, x):
            return self.twice(x)


    {decorator}
    class Actor(Base):
        def init(self, path):
            self.model = RewardModel(path).cuda()
            {made}

        def score(self, x):
            reward = self.model(x)
            {used}

        {more}
"""


def codes(tmp_path: Path, code: str) -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    file = tmp_path / "actors.py"
    file.write_text(dedent(code), encoding="utf-8")
    return sorted({finding.code for finding in memlint.lint([file], select=["MEM201", "MEM202"]).findings})


def written(
    decorator: str = "@ray.remote(num_gpus=1)",
    used: str = 'return reward.to("cpu")',
    more: str = "pass",
    made: str = "pass",
) -> str:
    return _CODE.format(decorator=decorator, used=used, more=more, made=made)


@pytest.mark.parametrize(
    ("decorator", "used", "more"),
    [
        ("@ray.remote(num_gpus=1)", 'return reward.to("cpu")', "pass"),
        ("@ray.remote", "return reward", "pass"),
        ("@remote", 'return {"reward": reward}', "pass"),
        ("@remote(num_cpus=2)", "return [reward, 1]", "pass"),
        ("@ray.remote", "return reward", "def other(self, x): return self.strategy.score(x)"),
        ("@ray.remote", "return reward", "def step(self, xs): return sum(map(self.score, xs))"),
        ("@ray.remote", "return reward", "def other(self): super(Actor, self).setup(hasattr(self, 'model'))"),
    ],
)
def test_another_process_gets_no_graph(tmp_path: Path, decorator: str, used: str, more: str) -> None:
    assert codes(tmp_path, written(decorator, used, more)) == ["MEM201"]


@pytest.mark.parametrize(
    "code",
    [
        # the caller may be in this process
        written(decorator=""),
        written(decorator="@functools.total_ordering"),
        written(decorator="@unknown.remote"),
        # the class itself calls it
        written(more="def step(self, x):\n            self.score(x).mean().backward()"),
        written(more="def step(self, x):\n            return self.score(x)"),
        written(more="def step(self, xs):\n            sum(map(self.score, xs)).mean().backward()"),
        written(more="def step(self, fit):\n            return fit(lambda x: self.score(x).mean())"),
        # code that gets the object may call it
        written(more="def step(self, x):\n            return Loop(self).run(x)"),
        written(more="def step(self, name, x):\n            getattr(self, name)(x).mean().backward()"),
        written(more="def step(this, x):\n            this.score(x).mean().backward()"),
        written(more="@property\n        def step(self):\n            return self.score(self.x)"),
        written()
        .replace("def score", "def __call__")
        .replace("    pass\n", "    def step(self, x): self(x).sum().backward()\n"),
        # a base that is not known may call it
        written().replace("(Base)", "(Worker)"),
        # it trains
        written(used="reward.mean().backward(); self.optim.step(); return reward"),
        written(used="self.strategy.backward(reward.mean(), self.model); return reward"),
        # it guards the run
        written(used="return reward").replace("        def score", "        @torch.no_grad()\n        def score"),
        # unresolved code of this process gets it, too
        written(used="self.strategy.keep(reward); return reward"),
    ],
)
def test_a_graph_that_this_process_may_need(tmp_path: Path, code: str) -> None:
    assert not codes(tmp_path, code)


def test_a_method_that_the_base_class_calls(tmp_path: Path) -> None:
    code = written().replace("def score", "def twice")
    assert not codes(tmp_path, code)


def test_a_remote_function(tmp_path: Path) -> None:
    code = """
        import ray
        import torch
        from torch import nn


        class RewardModel(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(3, 4)

            def forward(self, x):
                return self.head(x)


        {0}
        def score(model: RewardModel, x):
            reward = model(x)
            return reward.cpu()
    """
    assert codes(tmp_path, code.format("@ray.remote")) == ["MEM201"]
    assert not codes(tmp_path, code.format(""))
