"""Errors of the engine at their place in the scenario file: its name and its key path.

Depends on how `engine_inputs` writes a scenario for the engine. Read `engine_inputs.engine_config` first; the words
are in `engine_wording`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hindflight.replay.experiment.engine_inputs import Job
from hindflight.replay.experiment.engine_wording import describe, file_key
from hindflight.replay.scenario.flows import Flow, LegStack
from hindflight.replay.scenario.model import Scenario
from hindflight.replay.scenario.proxies import Proxy

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class EngineError:
    """One thing wrong with an engine configuration: `path` of the value, `kind` of the error, its `fields`.

    See `ConfigErrorKind` of `replay/engine/src/config/error.rs`.
    """

    path: Path
    kind: str
    fields: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> EngineError:
        """Return the error that the native core wrote as JSON."""
        document = json.loads(text)
        return cls(tuple(document["path"]), document["kind"], document.get("fields") or {})

    def problem(self) -> str:
        """Return what is wrong, without the place."""
        key = next((step for step in reversed(self.path) if isinstance(step, str)), "")
        return describe(key, self.kind, self.fields)


_OTHER_RECOVERY = {"profile": ", and this profile sets another", "sack": ", and sack = false sets another"}
"""How keys that are not the recovery's give one."""


def in_scenario_terms(scenario: Scenario, errors: Iterable[tuple[Job, EngineError]]) -> list[str]:
    """Return a line for each thing that the engine refuses in configurations of jobs: key path and problem."""
    lines = []
    for job, error in errors:
        key, problem = _file_path(scenario, job, error.path), error.problem()
        if error.kind == "fixed_recovery":
            problem += _OTHER_RECOVERY.get(key.rpartition(".")[2], "")
        lines.append(f"{key}: {problem}")
    return list(dict.fromkeys(lines))


def _file_path(scenario: Scenario, job: Job, path: Path) -> str:
    match path:
        case ("flows", int(number), *rest):
            return _flow_key(scenario, job, number, tuple(rest))
        case ("path", "links", int(number), *rest):
            return _link_key(scenario, number, tuple(rest))
        case ("path", "nodes", *rest):
            return _written("path", tuple(rest))
        case ("path", *rest):
            return _written("", tuple(rest))
        case _:
            return _written("", tuple(step for step in path if step != "bursts"))


def _flow_key(scenario: Scenario, job: Job, number: int, rest: Path) -> str:
    """The flow under test is the engine's first; `[[flows]]` come after it."""
    table = f"flows[{number - 1}]" if number else "flow"
    variant = scenario.flows[number - 1].variant if number else job.variant
    match rest:
        case ("proxies", int(place), *keys) if keys:
            return _proxy_key(scenario, (table, variant), _chain(scenario, job, number)[place], tuple(keys))
        case ("params", *keys):
            table, rest = "variants", (variant, *keys)
        case ("stack", *keys):
            return _stack_key(scenario, table, variant, tuple(keys))
        case ("variant",) if not number:
            table, rest = "compare", ("variants",)
    return _written(table, rest)


def _chain(scenario: Scenario, job: Job, number: int) -> tuple[Proxy, ...]:
    if number:
        return scenario.proxies_of(scenario.flows[number - 1]).joined(scenario.flows[number - 1].proxies)
    return tuple(proxy for proxy in scenario.proxies_of().chain(job.proxy) if not proxy.protects)


def _proxy_key(scenario: Scenario, flow: tuple[str, str], proxy: Proxy, keys: Path) -> str:
    """The key of a proxy of a `flow`, which is its table and its variant."""
    table, variant = flow
    list_ = "compare.proxies" if table == "flow" else f"{table}.proxies"
    number = scenario.proxies_of().number(proxy)
    own = f"proxy[{number}]"
    match keys:
        case ("params", *rest):
            return _written("variants", (proxy.variant or variant, *rest))
        case ("stack", _, *rest):
            given = _given(proxy.stack, tuple(rest))
            if given is not None:
                return _written(f"{own}.stack", given)
            return _stack_key(scenario, table, proxy.variant or variant, tuple(rest))
        case ("variant",) if proxy.variant is None:
            return "compare.variants" if table == "flow" else f"{table}.variant"
        case ("receive_buffer" | "send_buffer" as key, *_) | ("limit", str(key)):
            keys = (key,)
    return list_ if number is None or keys == ("node",) else _written(own, keys)


def _stack_key(scenario: Scenario, table: str, variant: str, keys: Path) -> str:
    tuned = scenario.variants.get(variant)
    given = _given(tuned.stack if tuned is not None else None, keys)
    if given is not None:
        return _written(f"variants.{variant}.stack", given)
    flows = {"flow": scenario.flow, **{f"flows[{i}]": flow for i, flow in enumerate(scenario.flows)}}
    return _written(table, _given(flows[table], keys) or keys)


def _given(stack: LegStack | Flow | None, keys: Path) -> Path | None:
    """The keys of `stack` that give a parameter; none if it does not. Without SACK, `sack` gives the recovery, and so
    does a profile that has one."""
    overrides = {} if stack is None else stack.overrides()
    if file_key(str(keys[0])) in overrides:
        return keys
    if keys[0] != "recovery" or stack is None:
        return None
    if overrides.get("sack") is False:
        return ("sack",)
    return None if stack.profile is None else ("profile",)


def _link_key(scenario: Scenario, number: int, rest: Path) -> str:
    link = scenario.links[number]
    table = f"links[{number}]"
    way = rest[0] if rest and rest[0] in ("forward", "reverse") else None
    keys = rest[1:] if way else rest
    of_schedule = keys[:1] == ("schedule",)
    if link.channel is not None and (of_schedule or keys[:1] == ("loss",)):
        return f"{table}.channel"
    if way == "reverse" and link.reverse is not None and not of_schedule:
        table += ".reverse"
    return _written(table, keys)


def _written(table: str, keys: Path) -> str:
    """`table` and then `keys` as the file writes them."""
    text = table
    for step in keys:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{file_key(step)}" if text else file_key(step)
    return text
