"""Evidence: what was measured of findings, as a file that the linter reads back. docs/evidence.md has its schema."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

import msgspec

from memlint.config import ConfigError
from memlint.finding import Evidence, PerIteration
from memlint.json_text import indented
from memlint.reading import MAX_DATA, read_file

VERSION = 1
FORMAT = "memlint-evidence"

VerdictName = Literal[
    "confirmed",
    "confirmed-host",
    "peak-only",
    "bounded",
    "cycle",
    "refuted",
    "not-reached",
    "too-few-iterations",
    "unmeasurable",
]
#: from the worst on: of several ranks or runs the worst speaks
WORST: tuple[VerdictName, ...] = (
    "confirmed",
    "peak-only",
    "cycle",
    "confirmed-host",
    "bounded",
    "refuted",
    "unmeasurable",
    "too-few-iterations",
    "not-reached",
)
#: these say nothing of the memory, so that nothing is known of the finding
SILENT: frozenset[str] = frozenset({"unmeasurable", "too-few-iterations", "not-reached"})


class Measured(msgspec.Struct, frozen=True):
    """How the program was measured."""

    python: str | None
    torch: str | None
    device: str | None
    meter: str
    warmup: int
    window: int
    end: str


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of one finding. ``path`` and the keys of ``files`` are POSIX paths from the project's root
    (absolute outside of it); ``files``: the SHA-256 of the content of each file of the finding and its trace."""

    fingerprint: str
    code: str
    path: str
    verdict: VerdictName
    reason: str
    device: str | None = None
    bytes_per_iteration: PerIteration | None = None
    host_bytes_per_iteration: int | None = None
    graph_nodes_per_iteration: int | None = None
    held_bytes: int | None = None
    hits: int = 0
    files: dict[str, str]

    def as_evidence(self) -> Evidence:
        """What a finding carries of it."""
        return Evidence(
            verdict=self.verdict,
            reason=self.reason,
            device=self.device,
            bytes_per_iteration=self.bytes_per_iteration,
            host_bytes_per_iteration=self.host_bytes_per_iteration,
            graph_nodes_per_iteration=self.graph_nodes_per_iteration,
        )


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One file of evidence. It bears no date: equal measurements give equal files."""

    format: str = FORMAT
    version: int = VERSION
    memlint: str
    run: Measured
    findings: tuple[Record, ...]


def content_hash(content: bytes) -> str:
    """What says that a file is still the same."""
    return hashlib.sha256(content).hexdigest()


def dumps(document: Document) -> str:
    """The document as a file holds it."""
    return indented(document)


def load(path: Path, where: str) -> Document:
    """The evidence in a file. Raises ConfigError, beginning with ``where``, for one that is none or cannot be read."""
    try:
        raw = read_file(path, MAX_DATA)
    except FileNotFoundError:
        raise ConfigError(f"{where}: there is no file {path}") from None
    except OSError as error:
        raise ConfigError(f"{where}: {path} cannot be read: {error.strerror}") from None
    try:
        data: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{where}: {path} is not valid JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ConfigError(f"{where}: {path} holds no evidence; `memlint verify --evidence FILE` writes it")
    if data.get("version") != VERSION:
        raise ConfigError(
            f"{where}: {path} is evidence of version {data.get('version')}, and this memlint reads version {VERSION}; "
            "write it again by `memlint verify --evidence FILE`"
        )
    try:
        return msgspec.convert(data, Document)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {path} is damaged: {error}") from None
