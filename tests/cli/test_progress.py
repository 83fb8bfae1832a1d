"""A long run tells how far it is: on a terminal, and elsewhere to those who ask."""

import io
import time

import pytest

from memlint.cli.output import progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY", 0.01)
    monkeypatch.setattr(progress, "PAUSE", 0.01)


def _shown(out: io.StringIO, *, quiet: bool = False, verbose: bool = False, wanted: str = "") -> str:
    """What is written meanwhile; where something is wanted, until it is."""
    with progress.progress_bar(out, quiet=quiet, verbose=verbose) as report:
        report("analysing functions", 1_200, 6_000)
        for _ in range(1_000):
            if not wanted or wanted in out.getvalue():
                break
            time.sleep(0.01)
    return out.getvalue()


@pytest.mark.parametrize("out", [io.StringIO(), _Terminal()])
def test_what_is_done_and_what_is_left(out: io.StringIO) -> None:
    shown = _shown(out, verbose=True, wanted="1,200 of 6,000")
    assert "analysing functions" in shown
    assert "1,200 of 6,000" in shown


@pytest.mark.parametrize(("quiet", "verbose"), [(False, False), (True, False), (True, True)])
def test_nothing_is_written_to_a_file_that_nobody_asked_for(quiet: bool, verbose: bool) -> None:
    assert _shown(io.StringIO(), quiet=quiet, verbose=verbose) == ""


def test_a_quiet_run_shows_no_bar() -> None:
    assert _shown(_Terminal(), quiet=True) == ""
