"""What is wrong with a scenario file, a line for each error: the key path and what is allowed there.

Depends on pydantic's errors and the tables that it gets, not on a scenario. Read docs/scenario.md, "Errors".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hindflight.channels.models.parameters import BOUNDS, model_error, violated_bound
from hindflight.toolkit.errors import did_you_mean
from hindflight.toolkit.units import quantity_of

MAX_SHOWN_CHARS = 60
"""Characters of a value that are shown."""
MAX_SHOWN_KEYS = 16
"""Keys of a table that are shown."""

_WANTED = {
    "bool_type": "is neither true nor false",
    "int_type": "is not a whole number",
    "int_from_float": "is not a whole number",
    "int_parsing_size": "is out of range",
    "float_type": "is not a number",
    "finite_number": "is not a finite number",
    "string_type": "is not a string",
    "tuple_type": "is not a list; write it in [ ]",
    "dict_type": "is not a table",
    "model_type": "is not a table",
    "model_attributes_type": "is not a table",
}


@dataclass(frozen=True, slots=True)
class Tables:
    """What a file may hold: its root, the tables by their key or, where one of several is chosen, by their name, and
    for each key that chooses the key of the choice and what there is."""

    root: type[BaseModel]
    parts: Mapping[str, type[BaseModel]]
    choices: Mapping[str, tuple[str, tuple[str, ...]]]


def describe(error: ValidationError, tables: Tables) -> list[str]:
    """Return a line for each error, with its key path: misspelt keys first, before the keys that they leave missing."""
    errors = sorted(_own(error.errors()), key=lambda e: e["type"] != "extra_forbidden")
    lines = []
    for each in errors:
        path = _key_path(each["loc"], tables)
        lines.append(f"{path + ': ' if path else ''}{_message(each, tables)}")
    return lines


def suggestion(given: object, names: Sequence[str], allowed: str = "") -> str:
    """Return the guess at what was meant, or else what is allowed, to follow what is wrong."""
    return did_you_mean(str(given), names, lead="; ") or f"; allowed: {allowed or ', '.join(names)}"


def _message(error: ErrorDetails, tables: Tables) -> str:
    given, kind = error["input"], error["type"]
    message = f"{_shown(given)} {_WANTED.get(kind, 'is not allowed here')}"
    match kind:
        case "extra_forbidden":
            message = f"unknown key{_nearest_key(error['loc'], tables)}"
        case "missing":
            message = "this key is missing"
        case "string_pattern_mismatch" if error["loc"][-1] == "sha256":
            message = f"{_shown(given)} is no SHA-256; 64 digits of 0-9 a-f"
        case "string_pattern_mismatch" | "string_too_short" | "string_too_long":
            message = f"{_shown(given)} is no name; use 1 to 64 letters, digits and _ . + -"
        case "too_short" | "too_long":
            message = _wrong_length(error)
        case "literal_error":
            expected = error["ctx"]["expected"]
            names = [name.strip("'") for name in expected.replace(" or ", ", ").split(", ")]
            message = f"{_shown(given)} is not allowed{suggestion(given, names, expected)}"
        case "union_tag_invalid" | "union_tag_not_found" if "channel" in error["loc"]:
            message = model_error(error)
        case "union_tag_invalid" | "union_tag_not_found":
            message = _of_kind(str(error["loc"][-1]), given, tables)
        case "value_error":
            message = error["msg"].removeprefix("Value error, ")
        case _ if kind in BOUNDS:
            message = f"{_shown(given)} is out of range{_limit(error)}"
    return message


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _limit(error: ErrorDetails) -> str:
    """Return the bound that a value broke, in the unit of what was given."""
    relation, bound = violated_bound(error)
    given = error["input"]
    quantity = quantity_of(given) if isinstance(given, str) else None
    number = str(bound) if isinstance(bound, int) else f"{bound:.12g}"
    return f"; {relation} {quantity.write(bound) if quantity else number}"


def _wrong_length(error: ErrorDetails) -> str:
    context = error["ctx"]
    bound = f"at least {context['min_length']}" if "min_length" in context else f"at most {context['max_length']}"
    count = len(error["input"])
    return f"{count} given, {bound} needed" if "min_length" in context else f"{count} given, {bound} allowed"


def _own(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out what only follows from an error inside: that a list with a wrong item is too short."""
    inner = {error["loc"][: len(outer["loc"])] for outer in errors for error in errors if error is not outer}
    return [error for error in errors if error["type"] != "too_short" or error["loc"] not in inner]


def _of_kind(key: str, given: object, tables: Tables) -> str:
    """Say what a table that chooses among several lacks: the key of its kind, or a kind that there is."""
    tag, allowed = tables.choices.get(key, tables.choices["loss"])
    if isinstance(given, Mapping) and isinstance(given.get(tag), str):
        if given[tag] in allowed:
            others = ", ".join(name for name in allowed if name != given[tag])
            return f"{tag} {given[tag]!r} is not allowed here; allowed: {others}"
        return f"unknown {tag} {given[tag]!r}{suggestion(given[tag], allowed)}"
    what = "the loss" if tag == "model" else "it"
    return f'{what} needs a {tag}, as in {{ {tag} = "{allowed[0]}" }}; allowed: {", ".join(allowed)}'


def _key_path(loc: tuple[int | str, ...], tables: Tables) -> str:
    path = ""
    tagged = False
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not tagged and part != "[key]":  # What pydantic says where the name of a table is wrong.
            path += f".{part}" if path else part
        # What follows a choice is its tag, which is no key.
        tagged = part in tables.choices
    return path


def _nearest_key(loc: tuple[int | str, ...], tables: Tables) -> str:
    owner: type[BaseModel] = tables.root
    for part in loc[:-1]:
        owner = tables.parts.get(str(part), owner)
    allowed = [field.alias or name for name, field in owner.model_fields.items()]
    return suggestion(
        loc[-1], allowed, "" if len(allowed) <= MAX_SHOWN_KEYS else f"{len(allowed)} keys, see docs/scenario.md"
    )
