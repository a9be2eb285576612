"""The manifest of a workspace: what went in, by which commands, and which Parquet parts hold each table.

Pure description: reads and checks JSON, touches no Parquet file. `workspace` decides when it is written.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hindflight.toolkit.errors import WorkspaceError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.schema import SCHEMA_VERSION, TABLES

NAME = "manifest.json"
FORMAT = "hindflight workspace"
FORMAT_VERSION = 1
PART_NAME = re.compile(r"(?P<table>[a-z]+)-(?P<number>\d{6})\.parquet")


@dataclass(frozen=True, slots=True)
class Input:
    """A file that was read: `input_id` is the key used in `flows` and `issues`, `note` says what was made of it."""

    input_id: int
    kind: str
    path: str
    name: str
    size_bytes: int
    sha256: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that changed the workspace, when, and with which versions."""

    command: str
    time_utc: str
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet file of a table. `replay`: it holds what a replay gave, and the next replay takes its place."""

    file: str
    rows: int
    size_bytes: int
    replay: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of a workspace. `next_part` numbers parts through and is never used twice."""

    inputs: tuple[Input, ...] = ()
    commands: tuple[Command, ...] = ()
    tables: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    next_part: int = 1

    def with_note(self, input_id: int, note: str) -> Manifest:
        """Return a copy in which input `input_id` carries `note`."""
        inputs = tuple(replace(i, note=note) if i.input_id == input_id else i for i in self.inputs)
        return replace(self, inputs=inputs)

    def to_json(self) -> str:
        """Return the manifest as the text of manifest.json."""
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, "schema_version": SCHEMA_VERSION}
        return json.dumps(head | asdict(self), indent=1, ensure_ascii=False) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of workspace `folder`.

    WorkspaceError: there is none, it is damaged, or a newer hindflight wrote it.
    """
    path = folder / NAME
    if not path.is_file():
        raise WorkspaceError(
            f"{folder} is not a workspace (it has no {NAME})",
            "`hindflight ingest CAPTURE -w FOLDER` makes one",
        )
    with plain_os_errors(f"reading {path}"):
        text = path.read_bytes()
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise WorkspaceError(f"{path} is not the manifest of a workspace")
        newer = document["format_version"] > FORMAT_VERSION or document["schema_version"] > SCHEMA_VERSION
        if newer:
            raise WorkspaceError(f"{folder} was written by a newer hindflight", "update hindflight")
        return _from_json(document)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkspaceError(f"{path} is damaged: {error!r}", "make the workspace anew from its inputs") from error


def _from_json(document: dict[str, Any]) -> Manifest:
    tables = {name: tuple(_part(name, part) for part in parts) for name, parts in document["tables"].items()}
    return Manifest(
        inputs=tuple(Input(**entry) for entry in document["inputs"]),
        commands=tuple(Command(**entry) for entry in document["commands"]),
        tables=tables,
        next_part=int(document["next_part"]),
    )


def _part(table: str, entry: dict[str, Any]) -> Part:
    part = Part(**entry)
    match = PART_NAME.fullmatch(part.file)
    if table not in TABLES or match is None or match["table"] != table:
        raise ValueError(f"{part.file} is no part of a table {table}")
    return part
