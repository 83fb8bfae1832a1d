"""``memlint new-rule``: create the folder of a new rule, with templates."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from memlint.config import ConfigError
from memlint.engine.rules.rooms import CODE, load_rooms, own_rooms
from memlint.engine.run import local_rules
from memlint.printable import printable

_RULE = '''\
"""{code}: say in one line what is found."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Event, Facts, Growth, Meta, Report

META = Meta(
    code="{code}",
    name="{name}",
    summary="Describe the finding in one line.",
    severity="warning",
    preview=True,
)
SEEKS = "say what is looked for"


class {event}(Event, frozen=True, kw_only=True):
    """What detect.py finds in one place. ``text``: its source."""

    text: str


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of({event}):
        yield Report(
            site=event.site,
            message=f"`{{event.text}}` takes device memory: say how much, and how it grows",
            help="say what to do instead",
            severity="warning",
            confidence=event.certainty,
            growth=Growth("device-tensor", "per-iteration"),
        )
'''

_DETECT = '''\
"""Say in one line what is looked for."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk.project import Analyser, Summary
from memlint.sdk.syntax import text

from .rule import {event}

#: functions outside the project whose calls are noted, by qualified name, such as "torch.eye"
CALLS = frozenset[str]()


def detect(analyser: Analyser, summary: Summary) -> Iterator[{event}]:
    """The places in one function that are reported."""
    for at, call in sorted(summary.notes.outside.items()):
        if call.name in CALLS:
            yield {event}(
                site=summary.site(at),
                function=summary.function.qual,
                certainty="high",
                text=text(call.expr),
            )
'''

_PAGE = """\
# {name} ({code})

Describe the finding in one line.

## What it does

Which code is reported, and which code like it is not.

## Why it costs memory

Which memory grows, how, and why.

## Bad

### The plain case

Every program below is a test (`memlint rule {code} --test`): the marker becomes `# error: [{code}]` once the rule finds
it.

```python
import torch


def train(model, loader):
    for batch in loader:
        model(batch)  # todo-error: [{code}]
```

## Good

### The same without the cost

```python
import torch


def train(model, loader):
    with torch.no_grad():
        for batch in loader:
            model(batch)
```

## Fix safety

memlint offers no automatic fix for this rule.

## Known limits

* What the rule misses, and where it may be wrong.

## Measured

Not measured yet: the rule stays in preview until it is.

## References

* A PyTorch note, an issue, a measurement.
"""


def scaffold(parsed: argparse.Namespace) -> int:
    """Write ``rule.py``, ``detect.py`` and ``README.md`` of a new rule. Raises ConfigError; nothing is overwritten."""
    code, name = parsed.code.upper(), parsed.name
    if not CODE.fullmatch(code):
        raise ConfigError(f"`{parsed.code}` is not a code: write MEM and three digits, such as MEM901")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigError(f"`{name}` is not a name: write lower-case words joined by dashes, such as growing-cat")
    place, known = _place()
    rooms = load_rooms((), known)
    if code in rooms:
        raise ConfigError(f"there is a rule {code} already: {rooms[code].folder}")
    same = next((room for room in rooms.values() if room.meta.name == name), None)
    if same is not None:
        raise ConfigError(f"there is a rule {name} already: {same.folder}")
    folder = place / f"{code.lower()}_{name.replace('-', '_')}"
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ConfigError(f"{folder} already exists") from None
    event = name.title().replace("-", "")
    for file, text in (("rule.py", _RULE), ("detect.py", _DETECT), ("README.md", _PAGE)):
        (folder / file).write_text(text.format(code=code, name=name, event=event), "utf-8")
        print(printable(str(folder / file)))
    return 0


def _place() -> tuple[Path, tuple[Path, ...]]:
    """The folder for a new rule, and the users' folders of rules."""
    cwd = Path.cwd()
    config = local_rules(cwd)
    rule_paths = config.rule_paths or config.closed_rules
    if rule_paths:
        return rule_paths[0], rule_paths
    own = own_rooms()
    if cwd.is_relative_to(own.parent) and (own.parent / "pyproject.toml").is_file():
        return own, ()
    raise ConfigError(
        'there is no place for rules: add `rule-paths = ["lint_rules"]` to [tool.memlint] and make that folder'
    )
