"""The channel models and their keys as data: name, allowed values, default. `hindflight channel models` prints them.

Read from the classes of the parameters, so that no key can be missing. What a key means, and where its default comes
from, is on the page of the model in docs/channels.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from inspect import getdoc
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt

from hindflight.channels.models import parameters
from hindflight.channels.models.parameters import Parameters
from hindflight.channels.models.synth import MODEL_CLASSES, MODELS, PacketModel
from hindflight.toolkit.errors import ChannelError, did_you_mean
from hindflight.toolkit.units import Quantity

_WORDS = ((Ge, "ge", "at least"), (Gt, "gt", "more than"), (Le, "le", "at most"), (Lt, "lt", "less than"))
PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", datetime: "a time"}


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a model: its path (`satellite.geo`), what it may be, and its default as written; None if required."""

    name: str
    allowed: str
    default: str | None


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A channel model: its name, what it is, whether it advances per packet or in time, and its keys."""

    name: str
    summary: str
    advances: str
    keys: tuple[Key, ...]


def model_references() -> list[ModelReference]:
    """Return all channel models, in the order in which errors list them."""
    return [_reference(kind) for kind in MODEL_CLASSES]


def find_model(name: str) -> ModelReference:
    """Return the model called `name`; ChannelError with the known names if there is none."""
    for kind in MODEL_CLASSES:
        if _name(kind) == name:
            return _reference(kind)
    raise ChannelError(f"there is no channel model {name!r}{did_you_mean(name, MODELS, lead='; ')}", ", ".join(MODELS))


def _reference(kind: type[Parameters]) -> ModelReference:
    summary = " ".join((getdoc(kind) or "").split("\n\n")[0].split())
    advances = "per packet" if kind in get_args(PacketModel) else "in time"
    if "over" in kind.model_fields:
        advances = "as the model under it"
    return ModelReference(_name(kind), summary, advances, tuple(_keys(kind, "", {kind: ""})))


def _name(kind: type[Parameters]) -> str:
    return str(get_args(kind.model_fields["model"].annotation)[0])


def _keys(kind: type[Parameters], path: str, listed: dict[type[Parameters], str]) -> Iterator[Key]:
    """Yield the keys of `kind` and of the tables in it; those of a class of tables once, at the first of its keys."""
    hints = get_type_hints(kind, include_extras=True)
    for field_name, field in kind.model_fields.items():
        name = f"{path}{field.alias or field_name}"
        if field_name == "model":
            continue
        type_ = without_none(hints[field_name])
        table = _table_of(type_)
        allowed = _allowed(type_)
        if table in listed:
            allowed += f" with the keys of {listed[table] or 'this model'}"
        yield Key(name, allowed, None if field.is_required() else _written(field.default, type_))
        if table is not None and table not in listed:
            listed[table] = name
            yield from _keys(table, f"{name}.", listed)


def without_none(type_: Any) -> Any:
    """Return the type of a key that may be left out."""
    if get_origin(type_) in {Union, types.UnionType}:
        left = [each for each in get_args(type_) if each is not type(None)]
        return left[0] if len(left) == 1 else Union[tuple(left)]  # noqa: UP007 - built from a list
    return type_


def unannotated(type_: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without what annotates it, and that."""
    if get_origin(type_) is Annotated:
        inner, *notes = get_args(type_)
        bare, more = unannotated(inner)
        return bare, (*more, *notes)
    return type_, ()


def _table_of(type_: Any) -> type[Parameters] | None:
    """Return the class of a table, or of the tables of a list; None for another type, and for any model."""
    bare, _ = unannotated(type_)
    if get_origin(bare) is tuple:
        return _table_of(get_args(bare)[0])
    return bare if isinstance(bare, type) and issubclass(bare, Parameters) else None


def _allowed(type_: Any) -> str:
    """Return what a key may be, in words."""
    bare, notes = unannotated(type_)
    quantity = quantity_of_type(type_)
    if quantity is not None:
        return f'a {quantity.name}, as "{quantity.example}"{bounds(notes, quantity)}'
    if type_ == parameters.InputFile:
        return "a file, relative to the file that names it"
    if get_origin(bare) is Literal:
        return " or ".join(f'"{value}"' for value in get_args(bare))
    if get_origin(bare) is tuple:
        return f"a list: {_allowed(get_args(bare)[0])}"
    is_model = get_origin(bare) in {Union, types.UnionType}
    other = "a channel model" if is_model else "a table" if _table_of(bare) is not None else ""
    return other or f"{PLAIN[bare]}{bounds(notes, None)}"


def quantity_of_type(type_: Any) -> Quantity | None:
    """Return the kind of quantity that a type reads, by the reader among its notes."""
    for note in unannotated(type_)[1]:
        read = getattr(note, "func", None)
        owner = read.args[0] if isinstance(read, partial) else getattr(read, "__self__", None)
        if isinstance(owner, Quantity):
            return owner
    return None


def bounds(notes: tuple[Any, ...], quantity: Quantity | None) -> str:
    """Return the bounds in the notes of a type, the last of each kind, as ", at least 0, at most 1"."""
    found: dict[str, str] = {}
    for note in notes:
        for each in getattr(note, "metadata", [note]):
            for kind, attribute, words in _WORDS:
                if isinstance(each, kind):
                    value = getattr(each, attribute)
                    found[words] = quantity.write(value) if quantity else f"{value:g}"
    return "".join(f", {words} {value}" for words, value in found.items())


def _written(default: Any, type_: Any) -> str:
    """Return a default as a file would have it; "none" if the key has no value unless it is given."""
    if default is None:
        return "none"
    quantity = quantity_of_type(type_)
    if quantity is not None:
        return f'"{quantity.write(default)}"'
    if isinstance(default, Parameters):
        given = default.model_dump(exclude_none=True)
        return f"{{ {', '.join(f'{key} = {_inner(default, key)}' for key in given)} }}"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return f"[{', '.join(str(each) for each in default)}]"
    return f'"{default}"' if isinstance(default, str) else str(default)


def _inner(table: Parameters, key: str) -> str:
    hints = get_type_hints(type(table), include_extras=True)
    return _written(getattr(table, key), without_none(hints[key]))
