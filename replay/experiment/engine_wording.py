"""What the engine refuses, in English and in the scenario file's keys and units.

One function per kind of error (`ConfigErrorKind` of `replay/engine/src/config/error.rs`). Does not depend on where the
value stands in the file: `engine_errors` finds that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from hindflight.replay.scenario.flows import STACK
from hindflight.toolkit.units import PACKETS, RATE, SIZE, TIME, Quantity

_KEYS = {name: key for key, name in STACK.items()}
_RENAMED = {"schedule": "changes", "bytes": "sizes", "rate_trace": "rate_file"}
_UNITS: dict[str, Quantity] = {"_ns": TIME, "_bps": RATE, "_bytes": SIZE, "_pkts": PACKETS}

Fields = Mapping[str, Any]


def file_key(name: str) -> str:
    """Return the file's key for one of the engine's keys."""
    return _KEYS.get(name) or _RENAMED.get(name) or _without_unit(name)


def describe(key: str, kind: str, fields: Fields) -> str:
    """Return what is wrong with the value of the engine's key `key`, without the key."""
    return _TEXTS.get(kind) or _PROBLEMS[kind](key, fields)


def kinds() -> frozenset[str]:
    """Return the kinds of errors that have words."""
    return frozenset(_TEXTS) | frozenset(_PROBLEMS)


def _without_unit(name: str) -> str:
    return next((name.removesuffix(suffix) for suffix in _UNITS if name.endswith(suffix)), name)


def _value(key: str, value: float | None) -> str:
    """Return a number of the engine's key `key` with its unit; JSON has null for what is not a number."""
    value = math.nan if value is None else value
    unit = next((unit for suffix, unit in _UNITS.items() if f"_{key}".endswith(suffix)), None)
    if unit is None or not math.isfinite(value):
        return f"{value:.12g}"
    if unit is TIME or unit is RATE:
        return unit.write_readably(value)
    return unit.write(value)


def _named(names: list[str]) -> str:
    return ", ".join(names)


def _out_of_range(key: str, f: Fields) -> str:
    value, low, high = (_value(key, f[name]) for name in ("value", "min", "max"))
    return f"{value} is not between {low} and {high}"


def _unknown_variant(_key: str, f: Fields) -> str:
    return f'no variant "{f["name"]}"; did you mean "{f["nearest"]}"? There are {_named(f["known"])}'


def _unknown_controller(_key: str, f: Fields) -> str:
    return f'no controller "{f["name"]}" is registered; registered are {_named(f["known"]) or "none"}'


def _requires(_key: str, f: Fields) -> str:
    needed = file_key(f["key"])
    if "value" in f:
        needed += f" = {str(f['value']).lower()}"
    return f"has no effect without {needed}"


_CONFLICTS = {
    "application": "contradicts a stream, which is read as it arrives and played at its own rate",
    "rate_bps": "contradicts rate: give one of them",
    "in_order": "packets of the two links may overtake each other, so in_order must be false",
    "rate_trace": "a rate trace describes one link, which cannot change into another",
}


def _conflicts(_key: str, f: Fields) -> str:
    other = f["with"]
    return _CONFLICTS.get(other) or f"has no effect with {file_key(other)}"


def _exclusive(_key: str, f: Fields) -> str:
    one, other = (file_key(key) for key in f["keys"])
    return f"give {one} or {other}, not both"


def _unequal_lengths(_key: str, f: Fields) -> str:
    (one, other), (ones, others) = (file_key(key) for key in f["keys"]), f["lengths"]
    return f"{ones} values of {one} and {others} of {other}; both need the same number, at least one"


_RELATIONS = {"below": "not below", "at_most": "more than", "at_least": "less than", "above": "not above"}


def _order(key: str, f: Fields) -> str:
    other = f["other"]
    profile = f" ({f['profile']})" if "profile" in f else ""
    value, limit = _value(key, f["value"]), _value(other, f["other_value"])
    return f"{value} is {_RELATIONS[f['must_be']]} {file_key(other)}, which is {limit}{profile}"


def _not_ascending(key: str, f: Fields) -> str:
    if key == "starts_ns":
        return f"{_value(key, f['value'])}: the times must ascend, and all be before the end"
    return f"{_value(key, f['value'])} is not greater than the value before it"


def _stay_of_other_clock(_key: str, f: Fields) -> str:
    if f["clock"] == "packets":
        return "a chain stepped per packet needs geometric stays"
    return "a chain in time needs stays in units of time"


def _buffer_below_two_segments(key: str, f: Fields) -> str:
    return f"{_value(key, f['value'])} is less than two segments of {f['smss_bytes']} B"


def _fixed_window_variant(_key: str, f: Fields) -> str:
    return f'variant "{f["variant"]}" would not be itself with a fixed window; take one of {_named(f["suitable"])}'


def _between(f: Fields) -> str:
    unit = f" {f['unit']}" if f["unit"] else ""
    return f"between {f['min']:.12g} and {f['max']:.12g}{unit}"


def _parameter_out_of_range(f: Fields) -> str:
    if f["unit"] == "bit/s":
        return _out_of_range("_bps", f)
    return f"{f['value']:.12g} is not {_between(f)}"


_PARAMETER_TEXTS = {
    "no_parameters": "the variant has no parameters",
    "not_flag": "must be true or false",
}

_PARAMETER_PROBLEMS: dict[str, Callable[[Fields], str]] = {
    "unknown": lambda f: f'no such parameter; did you mean "{f["nearest"]}"? There are {_named(f["known"])}',
    "out_of_range": _parameter_out_of_range,
    "not_whole": lambda f: f"{f['value']:.12g} is not a whole number",
    "not_allowed": lambda f: f'"{f["value"]}" is not one of {_named(f["allowed"])}',
    "not_number": lambda f: f"must be a number {_between(f)}",
    "not_name": lambda f: f"must be one of {_named(f['allowed'])}",
}


def _parameter(_key: str, f: Fields) -> str:
    variant, profile, problem = f["variant"], f["profile"], f["problem"]
    if problem == "other_profiles":
        return f"{variant} has parameters only under {_named(f['profiles'])}, none under {profile}"
    if problem == "not_below":
        return f"must be below {f['upper']}"
    text = _PARAMETER_TEXTS.get(problem) or _PARAMETER_PROBLEMS[problem](f)
    return f"{text} ({variant} under {profile})"


_NO_EFFECT = {
    "ns2_slow_start": 'profile "ns2" has the slow start of ns-2\'s agents, which does not end by delay',
    "ns2_increase_per_ack": 'profile "ns2" increases cwnd by one segment per ACK, whatever the ACK acknowledges',
    "own_slow_start": "{variant} has its own slow start",
    "own_window": "{variant} computes its own window",
    "no_ssthresh": "{variant} has no ssthresh that can be set",
    "not_paced": "{variant} is a controller in Python: its class says whether it paces",
    "always_paced": "{variant} always paces",
    "ignores_marks": "{variant} keeps its window at a congestion mark",
    "no_handshake": "has no effect without handshake = true: there is no SYN to retransmit",
    "own_timer": "{variant} has its own retransmission timer",
    "unrounded_timer": "has no effect with rto_rule linux, which does not round",
    "recovery_without_sack": "{variant} has recovery {recovery}, which does not read SACK blocks; leave it out",
    "needs_rack_prr": "needs recovery rack_prr with sack, which sends tail loss probes; {variant} has {recovery}",
    "no_undo": "{variant} has a recovery without undo",
    "needs_undo_without_timestamps": "has no effect without undo, or with timestamps, which reveal a spurious timeout",
    "needs_newreno": "needs recovery newreno; {variant} has {recovery}",
    "needs_dupacks": "needs a recovery that counts duplicate ACKs; {variant} has {recovery}",
}


def _no_effect(_key: str, f: Fields) -> str:
    name = f["variant"].removeprefix("external:")
    return _NO_EFFECT[f["reason"]].format(variant=f'variant "{name}"', recovery=f["recovery"])


_TEXTS = {
    "no_flows": "there must be at least one flow",
    "same_node": "is the sending node",
    "pool_differs": "connections that share a memory need the same node and the same receive_buffer",
    "limit_differs": "connections that a limit counts together need the same node and the same limit",
    "proxy_order": "proxies must follow the order of the path, one per node",
    "filter_without_drop_tail": "ACKs are filtered in a drop-tail queue; the link towards the sender has another one",
    "parameters_without_variant": "a proxy without a variant takes the flow's, with its parameters",
    "endless_flow": "a flow without end never closes: give it a size, or an application that ends",
    "first_not_zero": "the first value must be 0",
    "changes_nothing": "changes nothing: give rate, delay, outage, hold or overlap",
    "never_sends": "all its rates are 0: it never sends",
    "no_delay_or_rate": "a link needs a delay or a rate in at least one direction",
}

_PROBLEMS: dict[str, Callable[[str, Fields], str]] = {
    "malformed": lambda _, f: str(f["detail"]),
    "out_of_range": _out_of_range,
    "too_many_sources": lambda _, f: (
        f"{f['count']} ends of flows and datagrams, proxies and directions of links; the limit is {f['max']}"
    ),
    "too_many_packets_in_flight": lambda _, f: (
        f"puts {f['packets']} packets on the path at once; the limit is {f['max']}"
    ),
    "unknown_flow": lambda _, f: f"there is no flow number {f['number']}",
    "link_count": lambda _, f: f"{f['nodes']} nodes need {max(0, f['nodes'] - 1)} links, not {f['links']}",
    "duplicate_node": lambda _, f: f'two nodes are named "{f["name"]}"',
    "joined_already": lambda _, f: "{} and {} are joined already; links form a tree".format(*f["nodes"]),
    "not_joined": lambda _, f: "neither {} nor {} is a node of the links before it".format(*f["nodes"]),
    "unknown_node": lambda _, f: f'the path has no node "{f["name"]}"; it has {_named(f["nodes"])}',
    "node_outside_flow": lambda _, f: (
        f'"{f["name"]}" is not a node between the ends of the flow; these are {_named(f["nodes"]) or "none"}'
    ),
    "pool_too_small": lambda _, f: (
        f"{f['capacity_bytes']} B for {f['connections']} connections that share it; at least a packet of each, "
        f"{f['min_bytes']} B"
    ),
    "unknown_variant": _unknown_variant,
    "unknown_controller": _unknown_controller,
    "parameter": _parameter,
    "fixed_recovery": lambda _, f: f'variant "{f["variant"]}" determines its own recovery',
    "requires": _requires,
    "conflicts": _conflicts,
    "size_of_application": lambda _, f: (
        f'contradicts an application of kind "{f["application"]}", which determines its own size'
    ),
    "exclusive": _exclusive,
    "unequal_lengths": _unequal_lengths,
    "not_ascending": _not_ascending,
    "order": _order,
    "sum_not_one": lambda _, f: f"the probabilities sum to {f['sum']:.12g}, not 1",
    "stay_of_other_clock": _stay_of_other_clock,
    "queue_without_rate": lambda _, f: f"{f['queue']} manages a queue, but nothing ever queues on a link without rate",
    "duplicate_dscp": lambda _, f: f"DSCP {f['dscp']} is in two classes",
    "packet_too_large": lambda _, f: (
        f"makes a packet of {f['packet_bytes']} B with its headers; IP allows {f['max_bytes']} B"
    ),
    "buffer_below_two_segments": _buffer_below_two_segments,
    "fixed_window_variant": _fixed_window_variant,
    "no_effect": _no_effect,
}
