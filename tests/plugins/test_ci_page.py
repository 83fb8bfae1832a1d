"""What docs/ci.md says about flake8, pre-commit and GitHub is so."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from programs_run import LEAK, ROOT, flake8

yaml = pytest.importorskip("yaml")
pytest.importorskip("flake8")

PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
OTHERS = [(ROOT / name).read_text("utf-8") for name in ("README.md", "docs/coming-from.md")]
COMMANDS = re.findall(r"(?m)^\$ (flake8 .*)$", "\n".join([PAGE, *OTHERS]))


def block(language: str, word: str) -> str:
    """The code block of that language that holds the word."""
    (found,) = (text for text in re.findall(rf"(?s)```{language}\n(.*?)```", PAGE) if word in text)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_flake8_command_runs(command: str, make: Callable[[dict[str, str]], Path]) -> None:
    done = flake8(*command.split()[1:], cwd=make({"src/train.py": LEAK.format(comment="")}))
    assert "src/train.py:12:9: MEM102 " in done.stdout and done.stderr == ""


def test_flake8_configuration_is_read(make: Callable[[dict[str, str]], Path]) -> None:
    root = make({
        "train.py": LEAK.format(comment=""),
        ".flake8": block("ini", "memlint"),
        "memlint.toml": 'severity = {MEM102 = "note"}\n',
    })  # fmt: skip
    assert "train.py:12:9: MEM102 " in flake8(cwd=root).stdout
    (root / "memlint.toml").write_text('ignore = ["MEM102"]\n')
    assert "MEM102" not in flake8(cwd=root).stdout


def test_pre_commit_hooks_exist() -> None:
    config = yaml.safe_load(block("yaml", "hooks:"))
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}
    assert {hook["id"] for hook in config["repos"][0]["hooks"]} < hooks
    assert f"$ pre-commit run {config['repos'][0]['hooks'][0]['id']} --all-files" in PAGE
    assert all(f"`{hook}`" in PAGE for hook in hooks)


def test_github_inputs_exist() -> None:
    inputs = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]
    steps = yaml.safe_load(block("yaml", "runs-on"))["jobs"]["memlint"]["steps"]
    assert steps[-1]["with"].keys() < inputs.keys()
    said = re.search(r"(?s)\nInputs: (.*)", PAGE)[1]
    assert all(f"`{name}`" in said for name in inputs)
