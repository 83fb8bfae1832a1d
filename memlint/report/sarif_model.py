"""The parts of SARIF 2.1.0 that memlint writes, named as the standard names them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

Level = Literal["error", "warning", "note"]


class Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An object of a log. Fields with their default value are not written."""


class Message(Part, frozen=True):
    text: str
    markdown: str | None = None


class ArtifactLocation(Part, frozen=True):
    uri: str | None = None
    uri_base_id: str | None = None
    description: Message | None = None


class Content(Part, frozen=True):
    text: str


class Region(Part, frozen=True):
    start_line: int | None = None
    start_column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    snippet: Content | None = None


class PhysicalLocation(Part, frozen=True):
    artifact_location: ArtifactLocation
    region: Region | None = None


class Location(Part, frozen=True):
    physical_location: PhysicalLocation
    message: Message | None = None


class ThreadFlowLocation(Part, frozen=True):
    location: Location


class ThreadFlow(Part, frozen=True):
    locations: list[ThreadFlowLocation]


class CodeFlow(Part, frozen=True):
    thread_flows: list[ThreadFlow]


class Replacement(Part, frozen=True):
    deleted_region: Region
    inserted_content: Content


class ArtifactChange(Part, frozen=True):
    artifact_location: ArtifactLocation
    replacements: list[Replacement]


class Fix(Part, frozen=True):
    description: Message
    artifact_changes: list[ArtifactChange]
    properties: dict[str, Any]


class Suppression(Part, frozen=True):
    kind: Literal["inSource", "external"]
    properties: dict[str, Any]
    justification: str | None = None


class Result(Part, frozen=True):
    rule_id: str
    rule_index: int
    level: Level
    message: Message
    locations: list[Location]
    partial_fingerprints: dict[str, str]
    properties: dict[str, Any]
    code_flows: list[CodeFlow] = []
    fixes: list[Fix] = []
    suppressions: list[Suppression] = []


class Configuration(Part, frozen=True):
    level: Level


class Descriptor(Part, frozen=True):
    id: str
    name: str
    short_description: Message
    full_description: Message
    help: Message
    help_uri: str
    default_configuration: Configuration
    properties: dict[str, Any]


class Component(Part, frozen=True):
    name: str
    version: str
    semantic_version: str
    information_uri: str
    rules: list[Descriptor]


class Tool(Part, frozen=True):
    driver: Component


class Notification(Part, frozen=True):
    level: Level
    message: Message
    locations: list[Location] = []


class Invocation(Part, frozen=True):
    execution_successful: bool
    tool_execution_notifications: list[Notification]


class Run(Part, frozen=True):
    tool: Tool
    invocations: list[Invocation]
    original_uri_base_ids: dict[str, ArtifactLocation]
    column_kind: Literal["unicodeCodePoints"]
    results: list[Result]


class Log(Part, frozen=True):
    schema: str = msgspec.field(name="$schema")
    version: Literal["2.1.0"]
    runs: list[Run]
