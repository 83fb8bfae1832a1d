"""Fixes that do not hold are taken back, and files that cannot be written lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from toy_process import memlint

from memlint.cli import main
from memlint.project import Project

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

SAFE = 'mend("safe", "fixed = 1")\n'


def leftovers(root: Path) -> list[str]:
    return [path.name for path in root.rglob(".memlint*")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fixed = (", "the file would no longer compile: '(' was never closed (line 2)"),
        ("return 1", "the file would no longer compile: 'return' outside function (line 2)"),
        ("from __future__ import annotations", "the file would no longer compile: from __future__ imports must occur"),
        ("print(torch.no_grad)", "`torch` would be undefined"),
        ("bare()", "the finding would still be there"),
        ("bare(); done = 1", "the finding would still be there"),
        ("done = 1\\nbare()", "the finding would still be there"),
        ("spill()", "it would give MEM912 at a.py:2"),
        ("done = 1\\nif done:\\n    spill()", "it would give MEM912 at a.py:2"),
    ],
)
def test_a_fix_that_does_harm_is_not_made_and_the_others_are(toy: Toy, capsys: Capture, text: str, reason: str) -> None:
    bad = f"mend('safe', \"{text}\")\n"
    root = toy({"a.py": f"bare = spill = print\n{bad}{SAFE}", "b.py": SAFE})
    assert main([".", "--fix"]) == 1
    assert (root / "a.py").read_text() == f"bare = spill = print\n{bad}fixed = 1\n"
    assert (root / "b.py").read_text() == "fixed = 1\n"
    captured = capsys.readouterr()
    assert captured.err.startswith(f"memlint: fix of MEM911 at a.py:2 not applied: {reason}")
    assert len(captured.err.splitlines()) == 1
    assert "(2 fixed, 1 remaining: 1 warning)" in captured.out
    assert "fixable" not in captured.out
    assert main([".", "--diff"]) == 0, "a second run would change nothing"
    assert not leftovers(root)


def test_among_many_the_harmful_ones_are_found(toy: Toy, capsys: Capture) -> None:
    lines = [f'mend("safe", "fixed = {number}")' for number in range(20)]
    lines[3] = 'mend("safe", "spill()")'
    lines[11] = 'mend("safe", "no_such_name")'
    lines[17] = 'mend("safe", "x = \'")'
    root = toy({"a.py": "spill = print\n" + "\n".join(lines), "b.py": SAFE * 2})
    assert main([".", "--fix"]) == 1
    fixed = [line if at in (3, 11, 17) else f"fixed = {at}" for at, line in enumerate(lines)]
    assert (root / "a.py").read_text() == "spill = print\n" + "\n".join(fixed)
    assert (root / "b.py").read_text() == "fixed = 1\n" * 2
    said = capsys.readouterr().err.splitlines()
    assert sorted(line.split()[5] for line in said) == ["a.py:13", "a.py:19", "a.py:5"]


MORE = {"a.py": "", "b.py": "\\nspill()"}


def test_what_a_fix_uncovers_is_fixed_with_it_or_neither_is(toy: Toy, capsys: Capture) -> None:
    files = {name: f"tail = spill = print\nmend('safe', 'x = 1\\ntail(){more}')\n" for name, more in MORE.items()}
    root = toy(files)
    assert main([".", "--fix"]) == 1
    assert (root / "a.py").read_text() == "tail = spill = print\nx = 1\ntail().done()\n"
    assert (root / "b.py").read_text() == files["b.py"]
    assert capsys.readouterr().err == ("memlint: fix of MEM911 at b.py:2 not applied: it would give MEM912 at b.py:2\n")


def test_what_mends_both_is_named(toy: Toy, capsys: Capture) -> None:
    """A safe fix that uncovers what only an unsafe one mends."""
    last = 'cause("unsafe", "x = 2")'
    root = toy({"a.py": f"cause = print\nmend('safe', '{last}')\n"})
    assert main(["a.py", "--fix"]) == 1
    assert capsys.readouterr().err == (
        "memlint: fix of MEM911 at a.py:2 not applied: it would give MEM913 at a.py:2, which --unsafe-fixes would fix "
        "with it\n"
    )
    assert main(["a.py", "--fix", "--unsafe-fixes"]) == 0
    assert (root / "a.py").read_text() == "cause = print\nx = 2\n"


def test_nothing_is_named_that_does_not_mend_both(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": "spill = cause = print\nmend('safe', 'cause(\"unsafe\", \"spill()\")')\n"})
    for options in ([], ["--unsafe-fixes"]):
        assert main(["a.py", "--fix", *options]) == 1
        assert "--unsafe-fixes" not in capsys.readouterr().err
    assert (root / "a.py").read_text().startswith("spill = cause = print\nmend('safe'")


def test_equal_statements_are_told_apart(toy: Toy, capsys: Capture) -> None:
    """When the first of two equal statements is mended, the second one gets its fingerprint."""
    root = toy({"a.py": "tail()\nx = 1\ntail()  # noqa: MEM912\ntail()\n"})
    assert main(["a.py", "--fix"]) == 0
    assert (root / "a.py").read_text() == "tail().done()\nx = 1\ntail()  # noqa: MEM912\ntail().done()\n"
    assert not capsys.readouterr().err


def test_a_fix_of_two_files_is_made_in_both_or_in_none(toy: Toy, capsys: Capture) -> None:
    files = {"a.py": 'mend("safe", "fixed = 1", "one")\n', "b.py": 'x = 0\ntwin("one")\n'}
    root = toy(files)
    assert main([".", "--diff"]) == 1
    assert capsys.readouterr().err == "memlint: would fix 1 finding in 2 files\n"
    assert main([".", "--fix"]) == 0
    assert [(root / name).read_text() for name in files] == ["fixed = 1\n", "x = 0\nfixed = 1\n"]
    for name, text in files.items():
        (root / name).write_text(text)
    (root / "b.py").chmod(0o444)
    capsys.readouterr()
    assert main([".", "--fix"]) == 2
    assert "b.py: failed: not fixed: the file is read-only" in capsys.readouterr().out
    assert [(root / name).read_text() for name in files] == list(files.values())


def test_a_suppression_that_a_fix_makes_useless_does_not_keep_it_back(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": 'mend("safe", "fixed = 1", "one")\nbare("one")  # noqa: MEM911\n'})
    assert main(["a.py", "--fix", "--output-format", "concise"]) == 1
    assert (root / "a.py").read_text() == "fixed = 1\nfixed = 1  # noqa: MEM911\n"
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("a.py:2:12: warning MEM001[unused-suppression]")
    assert out[1].startswith("Found 2 findings (1 fixed, 1 remaining: 1 warning) in 1 file (")


def test_what_the_encoding_cannot_hold_is_not_written(toy: Toy, capsys: Capture) -> None:
    content = "# coding: latin-1\nx = 'é'\nmend(\"safe\", \"fixed = '\\u2192'\")\nmend('safe', 'y = 1')\n"
    root = toy({"a.py": content.encode("latin-1")})
    assert main(["a.py", "--fix"]) == 1
    assert (root / "a.py").read_bytes() == content.replace("mend('safe', 'y = 1')", "y = 1").encode("latin-1")
    assert "not applied: iso-8859-1 has no '→', which it would write" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_read_only_is_left_alone(toy: Toy, capsys: Capture, what: str) -> None:
    root = toy({"sub/a.py": SAFE, "b.py": SAFE})
    target = root / ("sub/a.py" if what == "file" else "sub")
    mode = target.stat().st_mode
    target.chmod(mode & ~0o222)
    try:
        assert main([".", "--fix"]) == 2
    finally:
        target.chmod(mode)
    assert ((root / "sub/a.py").read_text(), (root / "b.py").read_text()) == (SAFE, "fixed = 1\n")
    captured = capsys.readouterr()
    assert "sub/a.py: failed: not fixed: " in captured.out and "read-only" in captured.out
    assert "(1 fixed, 1 remaining: 1 warning)" in captured.out
    assert not leftovers(root)


def test_a_diff_of_read_only_files_is_no_failure(toy: Toy) -> None:
    root = toy({"a.py": SAFE})
    (root / "a.py").chmod(0o444)
    assert main(["a.py", "--diff"]) == 1


def test_a_file_that_changes_meanwhile_keeps_the_change(
    toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = toy({"a.py": SAFE, "b.py": SAFE})
    from memlint.fix import files

    real = files.write

    def late(changes: list[files.Change]) -> None:
        (root / "a.py").write_text("x = 'typed meanwhile'\n")
        real(changes)

    monkeypatch.setattr("memlint.engine.fixing.fixing.write", late)
    assert main([".", "--fix"]) == 2
    assert (root / "a.py").read_text() == "x = 'typed meanwhile'\n"
    assert (root / "b.py").read_text() == "fixed = 1\n"
    assert "a.py: failed: not fixed: it has changed since it was read" in capsys.readouterr().out


def test_a_file_that_becomes_unreadable_while_fixes_are_checked(
    toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many fixes some fail, so that the files are read again for the others."""
    root = toy({"a.py": SAFE, "b.py": 'bare = print\nmend("safe", "bare()")\n'})
    from memlint.engine.fixing import fixing

    real = fixing.lint

    def late(prepared: object, project: Project, *more: object, **options: object) -> object:
        if project.sources.is_given("a.py"):  # the first pass, which blames b.py
            (root / "a.py").write_bytes(b"\xff half a fi")
        return real(prepared, project, *more, **options)

    monkeypatch.setattr(fixing, "lint", late)
    assert main([".", "--fix"]) in (1, 2)
    assert (root / "a.py").read_bytes() == b"\xff half a fi"
    assert "it has changed since it was read" in "".join(capsys.readouterr())


def test_a_full_disk_leaves_the_original(toy: Toy) -> None:
    """A limit on the size of files stands for the full disk: the write fails half-way."""
    pytest.importorskip("resource")
    big = SAFE + "# " + "x" * 100_000 + "\n"
    root = toy({"a.py": big, "b.py": SAFE})
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))"
    done = memlint(root, ".", "--fix", first=limit)
    assert done.returncode == 2
    assert "a.py: failed: not fixed: file too large" in done.stdout.decode()
    assert "(1 fixed, 1 remaining: 1 warning)" in done.stdout.decode()
    assert ((root / "a.py").read_text(), (root / "b.py").read_text()) == (big, "fixed = 1\n")
    assert not leftovers(root)


def test_unreadable_and_broken_files_do_not_keep_the_others_back(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": SAFE, "b.py": b"\xff\n", "c.py": "def (:\n"})
    assert main([".", "--fix"]) == 2
    assert (root / "a.py").read_text() == "fixed = 1\n"
    assert "b.py: failed: not valid utf-8" in capsys.readouterr().out


def test_a_symlink_stays_one(toy: Toy) -> None:
    root = toy({"real/a.py": SAFE})
    (root / "link.py").symlink_to("real/a.py")
    assert main(["link.py", "--fix"]) == 0
    assert (root / "link.py").is_symlink()
    assert (root / "real/a.py").read_text() == "fixed = 1\n"
    (root / "real/a.py").write_text(SAFE)
    assert main(["link.py", "real/a.py", "--fix"]) == 0
    assert (root / "real/a.py").read_text() == "fixed = 1\n"


def test_projects_are_fixed_each_by_its_own_configuration(toy: Toy) -> None:
    config = '[tool.memlint]\nrule-paths = ["rules"]\nunfixable = ["MEM911"]\n'
    root = toy({"a.py": SAFE, "inner/pyproject.toml": config, "inner/b.py": SAFE})
    (root / "lint_rules").rename(root / "inner/rules")
    (root / "pyproject.toml").write_text('[tool.memlint]\nrule-paths = ["inner/rules"]\n')
    assert main(["a.py", "inner/b.py", "--fix"]) == 1
    assert ((root / "a.py").read_text(), (root / "inner/b.py").read_text()) == ("fixed = 1\n", SAFE)
