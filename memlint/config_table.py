"""The keys of a configuration file, their types and what they mean; the JSON schema is made of this."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import msgspec

from memlint.finding import Confidence, Severity

#: what a fix writes for a value that is only reported: ``.detach()``, or ``.item()``, which is never safe
ScalarFix = Literal["detach", "item"]
#: the treatment of findings in code that nothing in the project uses
UnusedCode = Literal["report", "note", "ignore"]


def _about(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


class Table(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The keys and types of one file's table."""

    extend: Annotated[str | None, _about("another configuration file, whose keys hold where this one says nothing")] = (
        None
    )
    select: Annotated[list[str] | None, _about("run these rules: codes, prefixes of codes, or names")] = None
    extend_select: Annotated[list[str], _about("run these rules, too")] = []
    ignore: Annotated[list[str] | None, _about("do not run these rules")] = None
    per_file_ignores: Annotated[dict[str, list[str]], _about("rules that are ignored in the files of a pattern")] = {}
    exclude: Annotated[list[str] | None, _about("files and folders to skip, in gitignore syntax")] = None
    extend_exclude: Annotated[list[str], _about("files and folders to skip, too")] = []
    preview: Annotated[bool | None, _about("run preview rules, too")] = None
    min_confidence: Annotated[Confidence | None, _about("show findings of at least this confidence")] = None
    unused_code: Annotated[UnusedCode | None, _about("what is done with findings in unused code")] = None
    severity: Annotated[dict[str, Severity], _about("the severity of the findings of a rule")] = {}
    import_roots: Annotated[
        list[str] | None, _about("folders from which modules are imported, where memlint does not find them")
    ] = None
    rule_paths: Annotated[
        list[str] | None, _about("folders of the project's own rules, which run with --local-rules")
    ] = None
    device_memory: Annotated[
        int | str | None, _about('memory of the device that the code is for, such as "24 GiB"')
    ] = None
    unsafe_fixes: Annotated[bool | None, _about("--fix makes unsafe fixes, too")] = None
    fixable: Annotated[list[str] | None, _about("rules whose fixes are given")] = None
    unfixable: Annotated[list[str] | None, _about("rules whose fixes are not given")] = None
    scalar_fix: Annotated[ScalarFix | None, _about("what a fix writes for a value that is only reported")] = None
    evidence: Annotated[str | list[str] | None, _about("files that `memlint verify --evidence` wrote")] = None
    baseline: Annotated[str | None, _about("a file of findings that are put off")] = None


KEYS = tuple(field.encode_name for field in msgspec.structs.fields(Table))
#: the values of keys that take one of several words
WORDS: dict[str, tuple[str, ...]] = {
    "min-confidence": get_args(Confidence),
    "unused-code": get_args(UnusedCode),
    "severity": get_args(Severity),
    "scalar-fix": get_args(ScalarFix),
}
