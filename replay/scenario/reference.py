"""The keys of a scenario file as data, for docs/reference/scenario-keys.md: table, key, allowed values, default.

Read from the classes of the tables, so that no key can be missing. What a key means is in docs/scenario.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from inspect import getdoc
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from hindflight.channels.models.reference import PLAIN, Key, bounds, quantity_of_type, unannotated, without_none
from hindflight.replay.scenario import applications, flows, model, proxies, queues
from hindflight.replay.scenario.quantities import Part
from hindflight.toolkit.units import PACKETS, SIZE


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the file: how it is written, what it is, its keys, and the table whose keys it has, too."""

    heading: str
    summary: str
    keys: tuple[Key, ...]
    base: str = ""


STACK = "Stack"
_TABLES: tuple[tuple[str, type[BaseModel], str], ...] = (
    ("the file", model.Scenario, ""),
    ("[[links]]", model.Link, ""),
    ("[links.reverse]", model.Direction, ""),
    ("jitter", model.Jitter, ""),
    ("changes", model.Change, ""),
    ("[flow]", flows.Flow, STACK),
    (STACK, flows.Stack, ""),
    ("[[flows]]", flows.SharingFlow, "[flow]"),
    ("[[datagrams]]", flows.Datagrams, ""),
    *((f'application = {{ kind = "{kind}" }}', each, "") for kind, each in (
        ("greedy", applications.Greedy), ("on_off", applications.OnOff), ("pages", applications.Pages),
        ("stream", applications.Stream), ("writes", applications.Writes), ("bursts", applications.Bursts),
    )),
    *((f'queue = {{ kind = "{kind}" }}', each, "") for kind, each in (
        ("drop_tail", queues.DropTail), ("red", queues.Red), ("pie", queues.Pie), ("codel", queues.Codel),
        ("priority", queues.Priority), ("drr", queues.Drr),
    )),
    ('loss = { model = "trace" }', model.Trace, ""),
    ('channel = { model = "file" }', model.ChannelFile, ""),
    ("[[proxy]]", proxies.Proxy, ""),
    ("faults", proxies.Fault, ""),
    ("stack of a proxy or a variant", flows.LegStack, STACK),
    ("[compare]", model.Compare, ""),
    ("[keep]", model.Keep, ""),
    ("[captured]", model.Captured, ""),
)  # fmt: skip
_BASES: dict[str, type[BaseModel]] = {STACK: flows.Stack, "[flow]": flows.Flow}

_OTHER: dict[Any, str] = {
    queues.Limit: 'packets or octets, as "50 pkts" or "64 KiB"',
    dict[str, Any]: "a table of the keys of the link layer",
    proxies.BufferSize: 'packets or octets, as "50 pkts" or "64 KiB", or { rate, rtt, errors }',
}
"""Types that another module reads."""


def scenario_tables() -> list[Table]:
    """Return the tables of a scenario file with their keys, in the order of docs/scenario.md."""
    return [_table(*each) for each in _TABLES]


def _table(heading: str, kind: type[BaseModel], base: str) -> Table:
    summary = " ".join((getdoc(kind) or "").split("\n\n")[0].split())
    inherited = set(_BASES[base].model_fields) if base else set()
    hints = get_type_hints(kind, include_extras=True)
    keys = []
    for name, field in kind.model_fields.items():
        if name in inherited:
            continue
        type_ = without_none(hints[name])
        default = None if field.is_required() else _written(field.get_default(call_default_factory=True), type_)
        keys.append(Key(field.alias or name, _allowed(type_), default))
    return Table(heading, summary, tuple(keys), base)


def _allowed(type_: Any) -> str:
    """Return what a key may be, in words."""
    outer, notes = unannotated(type_)
    if without_none(outer) != outer:
        return _allowed(Annotated[without_none(outer), *notes] if notes else without_none(outer))
    quantity = quantity_of_type(Annotated[outer, *notes]) if notes else None
    if quantity is not None:
        return f'a {quantity.name}, as "{quantity.example}"{bounds(notes, quantity)}'
    return _OTHER.get(outer) or _of_several(outer) or f"{PLAIN[outer]}{bounds(notes, None)}"


def _of_several(inner: Any) -> str:
    """Return the words for a choice, a list or a table; an empty text for a plain value."""
    of = get_args(inner)
    match get_origin(inner):
        case None:
            return "a table" if issubclass(inner, BaseModel) else ""
        case kind if kind is Literal:
            return " or ".join(f'"{value}"' for value in of)
        case kind if kind is tuple:
            return f"a list: {_allowed(of[0])}"
        case kind if kind is dict:
            return f"a table; each key a name, each value {_allowed(of[1])}"
    return _choice(of)


def _choice(kinds: tuple[Any, ...]) -> str:
    """Return the words for one of several tables, told apart by `kind` or `model`."""
    classes = [inner for kind in kinds for inner in (get_args(unannotated(kind)[0]) or (unannotated(kind)[0],))]
    if all(issubclass(each, Part) and "kind" in each.model_fields for each in classes):
        names = [str(get_args(each.model_fields["kind"].annotation)[0]) for each in classes]
        return f"a table whose `kind` is {', '.join(names)}"
    return "a channel model"


def _written(default: Any, type_: Any) -> str:
    """Return a default as a file would have it; "none" if the key has no value unless it is given."""
    quantity = quantity_of_type(type_)
    if default is None or default in ((), {}):
        return "none"
    if quantity is not None and not isinstance(default, bool):
        return f'"{quantity.write(default)}"'
    return _written_table(default) or (
        f"[{', '.join(_written(each, str) for each in default)}]"
        if isinstance(default, tuple)
        else f'"{default}"'
        if isinstance(default, str)
        else str(default).lower()
    )


def _written_table(default: Any) -> str:
    """Return a default that is a table, or a number of packets or octets; an empty text for another."""
    if isinstance(default, (queues.Limit, proxies.BufferSize)):
        in_packets = default.pkts is not None
        return f'"{PACKETS.write(default.pkts or 0) if in_packets else SIZE.write(default.size_bytes or 0)}"'
    if not isinstance(default, BaseModel):
        return ""
    tag = next((each for each in ("kind", "model") if each in type(default).model_fields), None)
    return "its defaults" if tag is None else f'{{ {tag} = "{getattr(default, tag)}" }}'


def table_text(table: BaseModel, keys: Iterable[str]) -> str:
    """Return these keys of a table with their values as a file has them, but without quotes: `min_rto = 300 ms`."""
    hints = get_type_hints(type(table), include_extras=True)
    fields = type(table).model_fields
    return ", ".join(
        f"{fields[key].alias or key} = {_value_text(getattr(table, key), without_none(hints[key]))}" for key in keys
    )


def _value_text(value: Any, type_: Any) -> str:
    quantity = quantity_of_type(type_)
    if quantity is not None and value is not None and not isinstance(value, bool):
        return quantity.write(value)
    match value:
        case queues.Limit() | proxies.BufferSize():
            text = _written_table(value).strip('"')
        case BaseModel():
            text = f"{{ {table_text(value, _given(value))} }}"
        case dict():
            text = f"{{ {', '.join(f'{key} = {_value_text(each, Any)}' for key, each in value.items())} }}"
        case tuple() | list():
            of = get_args(unannotated(type_)[0])
            text = f"[{', '.join(_value_text(each, of[0] if of else Any) for each in value)}]"
        case _:
            text = str(value).lower() if value is None or isinstance(value, bool) else str(value)
    return text


def _given(table: BaseModel) -> list[str]:
    """Return the keys of a table that the file or a preset gives, and what kind it is."""
    tags = {"kind", "model"} & set(type(table).model_fields)
    return [key for key in type(table).model_fields if key in table.model_fields_set | tags]
