"""What a logger gets, or what is copied into a module, is read as numbers: no gradient comes back through it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import memlint

_CODE = """
    import pytorch_lightning as pl
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.student = nn.Linear(3, 4)
            self.levels = nn.ParameterDict({{"q": nn.Parameter(torch.tensor(0.0), requires_grad=False)}})

        def forward(self, batch):
            return self.student(batch)


    class System(pl.LightningModule):
        def __init__(self, other):
            super().__init__()
            self.model, self.other = Net(), other

        def levels(self, loader):
            maps = []
            for batch in loader:
                maps.append(self.model(batch["image"]))
            maps = torch.cat(maps)
            return {{"q": torch.quantile(maps, q=0.9)}}

        def training_step(self, batch, i):
            return self.model(batch["image"]).mean()

        def configure_optimizers(self):
            return torch.optim.Adam(self.model.student.parameters())

        def write(self, levels):
            self.logger.log_metrics(levels)

        def on_train_end(self):
            levels = self.levels(self.trainer.train_dataloader)
            {0}
"""


def codes(tmp_path: Path, code: str) -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    file = tmp_path / "system.py"
    file.write_text(dedent(code), encoding="utf-8")
    return sorted({finding.code for finding in memlint.lint([file], select=["MEM102", "MEM201"]).findings})


@pytest.mark.parametrize(
    "use",
    [
        'self.log("q", levels["q"])',
        "self.log_dict(levels)",
        "self.logger.log_metrics(levels)",
        "self.trainer.logger.log_metrics(levels, step=1)",
        'self.other.log({"q": levels["q"]})',
        "self.write(levels)",
        "self.model.load_state_dict(levels)",
        "print(self.other.load_state_dict(levels))",
        "self.model.levels.update(levels)",
        # printed beside
        'self.log("q", levels["q"]); print(levels)',
    ],
)
def test_a_graph_that_is_only_read_is_needed_by_nothing(tmp_path: Path, use: str) -> None:
    assert codes(tmp_path, _CODE.format(use)) == ["MEM102", "MEM201"]


@pytest.mark.parametrize(
    "use",
    [
        'self.log("q", levels["q"]); self.manual_backward(levels["q"])',
        'self.log_dict(levels); levels["q"].backward()',
        # code that cannot be followed gets it, too
        'self.log("q", levels["q"]); self.other.use(levels)',
        "self.write(levels); self.other.use(levels)",
        "self.model.levels.update(levels); self.other.use(levels)",
        "self.other.use(levels)",
        "self.other.update(levels)",
        # the result is used
        'loss = self.other.log(levels["q"]); loss.backward()',
        'self.other.use(self.other.log(levels["q"]))',
    ],
)
def test_a_graph_that_something_else_needs(tmp_path: Path, use: str) -> None:
    assert not codes(tmp_path, _CODE.format(use))


def test_what_a_step_logs_and_returns_is_trained_on(tmp_path: Path) -> None:
    code = """
        import pytorch_lightning as pl
        import torch
        from torch import nn


        class System(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.model = nn.Linear(3, 4)

            def training_step(self, batch, i):
                loss = self.model(batch).mean()
                self.log("loss", loss)
                self.log_dict({"loss": loss})
                return loss

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters())
    """
    assert not codes(tmp_path, code)


@pytest.mark.parametrize(
    ("method", "body", "found"),
    [
        ("log_metrics", "self.writer.add_scalar('q', levels['q'].item())", True),
        ("log_metrics", "self.rows.append(float(levels['q']))", True),
        ("log_metrics", "print(levels)", True),
        ("log_metrics", "raise NotImplementedError", True),
        ("log_metrics", "for one in self.loggers: one.log_metrics(levels)", True),
        ("load_state_dict", "self.net.load_state_dict(levels)", True),
        # it keeps what it gets, or hands it on, or trains
        ("log_metrics", "self.rows.append(levels['q'])", False),
        ("log_metrics", "self.last = levels['q']", False),
        ("log_metrics", "self.other.use(levels)", False),
        ("log_metrics", "(levels['q'] * 2).backward()", False),
        ("load_state_dict", "self.levels = levels", False),
    ],
)
def test_a_method_of_the_project_that_the_call_may_mean(tmp_path: Path, method: str, body: str, found: bool) -> None:
    logger = f"class Logger:\n    def {method}(self, levels):\n        {body}\n"
    (tmp_path / "loggers.py").write_text(logger)
    use = f"self.other.{method}(levels); self.other.finish()"
    assert bool(codes(tmp_path, _CODE.format(use))) is found
