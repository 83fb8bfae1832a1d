"""The pages of docs/: their commands run, their links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pages
import pytest
from doc_commands import PAGES, blocks, commands, make_project, measures, own, run
from torch_python import torch_python

import memlint
from memlint.config import KEYS

DOCS = pages.ROOT / "docs"
#: (those of the page on rules build on each other: test_writing_rules.py runs them)
RUN = [page for page in PAGES if page.stem != "writing-rules"]
COMMANDS = list(dict.fromkeys(command for page in RUN for command in own(page)))
_LINK = re.compile(r"\]\(((?!https?:)[^)#\s]+)(?:#[^)]*)?\)")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("command", [one for one in COMMANDS if not measures(one)])
def test_command_runs(command: str, project: Path, tmp_path: Path) -> None:
    if "--fix" in command or "--add-ignore" in command:  # on a copy: the other commands want the findings
        project = shutil.copytree(project, tmp_path / "project")
    done = run(command, project)
    assert done.returncode in ((0,) if " rule " in command else (0, 1)), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [one for one in RUN if any(map(measures, own(one)))],
    ids=lambda page: page.stem,
)
def test_commands_that_measure_run(page: Path, tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    for command in filter(measures, own(page)):
        named = command.replace(" verify ", f" verify --python {torch_python()} ")
        done = run(named, folder)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        written = re.findall(r"verify .*--(?:output-file|evidence) (\S+)", command)
        assert [name for name in written if not (folder / name).is_file()] == []


_SHOWN = re.compile(r"(?s)```console\n\$ (memlint explain [^\n]*)\n```\n\n```text\n(.*?)```")


@pytest.mark.parametrize(("command", "output"), _SHOWN.findall((DOCS / "explain.md").read_text("utf-8")))
def test_the_page_on_explain_shows_what_is_said(command: str, output: str, project: Path) -> None:
    assert run(command, project).stdout == output


def test_the_first_page_shows_what_is_found(project: Path) -> None:
    (command,) = (one for one in own(DOCS / "getting-started.md") if "--quiet" in one)
    findings = [line for line in run(command, project).stdout.splitlines() if line.startswith("src/")]
    assert blocks(DOCS / "getting-started.md", "text") == ["\n".join([*findings, ""])]


def test_the_comments_of_another_linter_are_converted(tmp_path: Path) -> None:
    (command,) = (one for one in commands(DOCS / "coming-from.md") if one.startswith("sed "))
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "a.py"
    file.write_text(
        "a  # noqa: TG001\nb  # torch-preflight: ignore[TG003, TG002]\nc = 'TG001'\nd  # noqa: E501, TG001\n"
    )
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert file.read_text().splitlines() == [
        "a  # noqa: MEM101, MEM102, MEM103",
        "b  # memlint: ignore[TG003, MEM201, MEM202, MEM203]",
        "c = 'TG001'",
        "d  # noqa: E501, MEM101, MEM102, MEM103",
    ]


def test_python_example_runs(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(project)
    (code,) = blocks(DOCS / "cli.md", "python")
    exec(compile(code, "cli.md", "exec"), {"memlint": memlint})
    assert "MEM" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    links = _LINK.findall(page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
    rules = re.findall(r"\[(MEM\d{3})\]\((?:\.\./)?rules/(mem\d{3})_", page.read_text("utf-8"))
    assert [code for code, room in rules if code.lower() != room] == []


def test_the_readme_leads_to_each_page() -> None:
    seen, todo = set(), [pages.ROOT / "README.md"]
    while todo:
        page = todo.pop()
        seen.add(page)
        found = {(page.parent / link).resolve() for link in _LINK.findall(page.read_text("utf-8"))}
        todo += [one for one in PAGES if one in found and one not in seen]
    assert seen == set(PAGES)


@pytest.mark.parametrize("key", [f"`{key}`" for key in KEYS])
def test_each_key_of_the_configuration_is_described(key: str) -> None:
    rows = [line for line in (DOCS / "configuration.md").read_text("utf-8").splitlines() if line.startswith("| `")]
    assert any(key in row.split("|")[1] for row in rows)


def test_each_smell_has_an_answer() -> None:
    rows = [line for line in (DOCS / "smells.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    items = [row for row in rows if not row.startswith("| what the documentation says")]
    answers = ("](../rules/", "**not statically visible**", "**out of scope**", "no rule so far")
    assert items and [row for row in items if not any(answer in row.split("|")[2] for answer in answers)] == []
