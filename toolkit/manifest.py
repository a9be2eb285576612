"""The manifest of a workspace: its inputs, the commands that changed it, and the Parquet parts of each table.

Reads and checks JSON; opens no Parquet file. toolkit/workspace.py decides when the manifest is written.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hindflight.toolkit.errors import WorkspaceError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.schema import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

E = TypeVar("E", bound="DataclassInstance")
V = TypeVar("V")

NAME = "manifest.json"
FORMAT = "hindflight workspace"
FORMAT_VERSION = 4
"""2: parts carry the digest of their footer. 3: inputs carry the options with which they were read. 4: inputs carry
which capture was rebuilt."""
MAKE_AGAIN = "make the workspace again from its inputs"
"""What to do about a damaged workspace."""
PART_NAME = re.compile(r"(?P<table>[a-z]+)-(?P<number>\d{6})\.parquet")


@dataclass(frozen=True, slots=True)
class Input:
    """A file that was read: `input_id` is the key used in `flows` and `issues`, `note` says what was made of it.

    `options` are those of the command on which the rows depend, as in "--outer"; "" without any. `rebuilt` is the name
    of the first of the files merged with this one, itself included, that says that it was rebuilt from a capture at the
    receiver; "" if none does, for a pipe, which is read only once and never merged, and in a workspace of an earlier
    format version.
    """

    input_id: int
    kind: str
    path: str
    name: str
    size_bytes: int
    sha256: str
    note: str = ""
    options: str = ""
    rebuilt: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that changed the workspace, when, and with which versions."""

    command: str
    time_utc: str
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet file of a table. `replay`: it has the rows of a replay, which the next replay replaces.

    `footer_sha256` is that of the file's footer; "" in a workspace of format version 1.
    """

    file: str
    rows: int
    size_bytes: int
    replay: bool = False
    footer_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of a workspace. `next_part` is the number of the next part; no number is used twice."""

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

    WorkspaceError: the folder is not a workspace, its manifest is damaged, or a newer hindflight wrote it.
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
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WorkspaceError(f"{path} is damaged ({type(error).__name__}: {error})", MAKE_AGAIN) from error


def _from_json(document: dict[str, Any]) -> Manifest:
    tables = {name: tuple(_part(name, part) for part in parts) for name, parts in document["tables"].items()}
    if unknown := tables.keys() - TABLES.keys():
        raise ValueError(f"no table {unknown.pop()!r}")
    return Manifest(
        inputs=tuple(_entry(Input, entry) for entry in document["inputs"]),
        commands=tuple(_command(entry) for entry in document["commands"]),
        tables=tables,
        next_part=_checked("next_part", document["next_part"], int),
    )


def _entry(kind: type[E], entry: dict[str, Any]) -> E:
    """Make a dataclass of its JSON object, each value of the declared type. ValueError, TypeError: it is not."""
    types = {"int": int, "str": str, "bool": bool}
    made = kind(**{name: _text(value) if isinstance(value, str) else value for name, value in entry.items()})
    for each in fields(made):
        _checked(each.name, getattr(made, each.name), types.get(str(each.type), dict))
    return made


def _command(entry: dict[str, Any]) -> Command:
    command = _entry(Command, entry)
    for program, version in command.versions.items():
        _checked(_text(program), _text(version), str)
    return command


def _checked(name: str, value: Any, kind: type[V]) -> V:
    """ValueError if `value` is not of type `kind`, or is a negative number."""
    if type(value) is not kind or (isinstance(value, int) and value < 0):
        raise ValueError(f"{name} is {value!r}")
    return value


def _text(value: str) -> str:
    """ValueError if a JSON string is not Unicode text (half of a surrogate pair)."""
    value.encode()
    return value


def _part(table: str, entry: dict[str, Any]) -> Part:
    part = _entry(Part, entry)
    match = PART_NAME.fullmatch(part.file)
    if table not in TABLES or match is None or match["table"] != table:
        raise ValueError(f"{part.file} is not a part of table {table}")
    return part
