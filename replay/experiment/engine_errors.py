"""Errors of the engine in the terms of the scenario file: its name, its key path and its keys.

Depends on how `engine_inputs` writes a scenario for the engine and on the names of stack parameters;
decides nothing about values, whose units the engine writes. Read `engine_inputs.engine_config` first.
"""

from __future__ import annotations

import re

from hindflight.replay.experiment.engine_inputs import Job
from hindflight.replay.scenario.flows import STACK
from hindflight.replay.scenario.model import Scenario

_KEYS = {name: key for key, name in STACK.items()}
_RENAMED = {"schedule": "changes", "bytes": "sizes", "rate_trace": "rate_file"}
_UNIT = re.compile(r"_(?:ns|bps|bytes|pkts)$")
_NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)*_(?:ns|bps|bytes|pkts)\b")


def in_scenario_terms(scenario: Scenario, job: Job, key: str, problem: str) -> str:
    """Return the line for what the engine said of the value at `key` in the configuration of `job`."""
    text = _NAME.sub(lambda name: _own(name.group()), problem)
    return f"{scenario.where}: {_file_key(scenario, job, key)}: {text}"


def _file_key(scenario: Scenario, job: Job, key: str) -> str:
    head, _, rest = key.partition(".")
    if found := re.fullmatch(r"flows\[(\d+)\]", head):
        return _flow_key(scenario, job, int(found.group(1)), rest)
    if head == "path":
        return _path_key(scenario, rest)
    return _own_path(key.replace(".bursts.", "."))


def _flow_key(scenario: Scenario, job: Job, number: int, rest: str) -> str:
    """The flow under test is the engine's first; `[[flows]]` come after it."""
    table = f"flows[{number - 1}]" if number else "flow"
    variant = scenario.flows[number - 1].variant if number else job.variant
    split = re.fullmatch(r"proxies\[\d+\]\.(.*)", rest)
    if split:
        variant = scenario.proxy.variant or variant
        rest = split.group(1)
    part, _, name = rest.partition(".")
    match part:
        case "params":
            key = f"variants.{variant}.{name}"
        case "stack":
            key = f"{table}.{_own(name)}"
        case "node":
            key = f"{table}.proxies" if number else "compare.proxies"
        case _ if split and (part != "variant" or scenario.proxy.variant):
            key = f"proxy.{_own(part)}"
        case "variant" if not number:
            key = "compare.variants"
        case _:
            key = f"{table}.{_own_path(rest)}" if rest else table
    return key


def _path_key(scenario: Scenario, rest: str) -> str:
    found = re.fullmatch(r"links\[(\d+)\](?:\.(forward|reverse))?\.?(.*)", rest)
    if not found:
        return rest.replace("nodes", "path")
    number, way, name = int(found.group(1)), found.group(2), found.group(3)
    link = scenario.links[number]
    table = f"links[{number}]"
    if link.channel is not None and name.startswith(("schedule", "loss")):
        return f"{table}.channel"
    if way == "reverse" and link.reverse is not None and not name.startswith("schedule"):
        table += ".reverse"
    return f"{table}.{_own_path(name)}" if name else table


def _own_path(path: str) -> str:
    return ".".join(_own(part) for part in path.split("."))


def _own(name: str) -> str:
    """Return the file's key for one of the engine's, which may be followed by an index."""
    word, bracket, place = name.partition("[")
    word = _KEYS.get(word) or _RENAMED.get(word) or _UNIT.sub("", word)
    return word + bracket + place
