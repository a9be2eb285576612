"""Scenario files: one TOML file says the path, the flow, the proxies, the channel and what to compare.

Parses and validates; runs nothing. Every error names the key path and what is allowed. Read docs/scenario.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, PrivateAttr, ValidationError, model_validator

from hindflight.channels.models import losses
from hindflight.channels.models.link_layer import Arq, Fec, LinkModel, LinkProtection
from hindflight.channels.models.parameters import LONGEST_NS, InputFile
from hindflight.replay.catalogue import suggest_variant
from hindflight.replay.scenario.applications import APPLICATIONS, written_at
from hindflight.replay.scenario.flows import Datagrams, Flow, LegStack, SharingFlow
from hindflight.replay.scenario.gateways import problems_of_gateways
from hindflight.replay.scenario.presets import with_presets
from hindflight.replay.scenario.proxies import Fault, Proxies, Proxy, StackLayers, new_text, nodes_named, problems_of
from hindflight.replay.scenario.quantities import (
    MAX_SEED,
    Chains,
    Count,
    Duration,
    Name,
    Names,
    Packets,
    Part,
    Rate,
    Time,
    whole,
)
from hindflight.replay.scenario.queues import QUEUES, DropTail, Queue
from hindflight.replay.scenario.rates import RateTrace, read_rates
from hindflight.replay.scenario.topology import Ends, Tree, grow
from hindflight.replay.scenario.validation_errors import Tables, describe, suggestion
from hindflight.replay.scenario.variant_parameters import VariantParameters
from hindflight.toolkit.errors import MachineError, ScenarioError
from hindflight.toolkit.text import name_from_text
from hindflight.toolkit.units import TIME


def _name(text: str) -> str:
    """Return `text` if it names a file: ValueError for a URI that does not."""
    name_from_text(text)
    return text


FileName = Annotated[str, AfterValidator(_name)]
"""A file, relative to the scenario; a `file:` URI where its name is not UTF-8 (`name_from_text`)."""


class Trace(Part):
    """Losses of a captured channel, by position; `file` is relative to the scenario file."""

    model: Literal["trace"]
    file: FileName
    block: Packets = 0


Loss = Annotated[
    losses.NoLoss | losses.PacketLoss | losses.TimeLoss | LinkProtection | Trace, Field(discriminator="model")
]


class ChannelFile(Part):
    """A channel over time from a file of any format that has one; `file` is relative to the scenario file."""

    model: Literal["file"]
    file: InputFile


Channel = Annotated[LinkModel | LinkProtection | ChannelFile, Field(discriminator="model")]
"""What gives a link's rate, delay and loss over time: a model with the keys of `channel synth`, or a file."""


class Jitter(Part):
    """What is added to the delay of each packet: a random value.

    `spread` is the maximum of a uniform one, the mean of an exponential one, the standard deviation of the normal one
    whose absolute value a half-normal one is.
    """

    kind: Literal["uniform", "exponential", "half_normal"]
    spread: Annotated[int, whole(TIME), Field(ge=1, le=LONGEST_NS)]

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        return {"kind": self.kind, "spread_ns": self.spread}


class Direction(Part):
    """One direction of a link. No rate: packets are not serialised and never queue."""

    rate: Rate | None = None
    rate_file: FileName | None = None
    delay: Time
    jitter: Jitter | None = None
    queue: Queue = DropTail()
    loss: Loss = losses.NoLoss()

    @model_validator(mode="after")
    def _one_rate(self) -> Direction:
        _check_one_rate(self.rate, self.rate_file)
        return self


def _check_one_rate(rate: float | None, rate_file: str | None) -> None:
    if rate is not None and rate_file is not None:
        raise ValueError("rate and rate_file both give the rate; leave one out")


class Change(Part):
    """From `at` on these values hold, in both directions; those that are left out stay as they were."""

    at: Time
    rate: Rate | None = None
    delay: Time | None = None
    outage: Annotated[bool | None, Field(strict=True)] = None
    hold: Annotated[bool | None, Field(strict=True)] = None

    @model_validator(mode="after")
    def _changes_something(self) -> Change:
        if self.rate is None and self.delay is None and self.outage is None and self.hold is None:
            raise ValueError("changes nothing; give rate, delay, outage or hold")
        if self.outage and self.hold:
            raise ValueError("outage and hold contradict each other: what meets the break is lost, or it waits")
        return self


class Link(Part):
    """A link between two nodes: the next two of the path, or those that `from` and `to` name. Without `reverse` the way
    back has the same rate and delay, no loss."""

    name: Name
    begin: Annotated[Name | None, Field(alias="from")] = None
    end: Annotated[Name | None, Field(alias="to")] = None
    rate: Rate | None = None
    rate_file: FileName | None = None
    delay: Time
    jitter: Jitter | None = None
    queue: Queue = DropTail()
    loss: Loss = losses.NoLoss()
    reverse: Direction | None = None
    changes: tuple[Change, ...] = ()
    channel: Channel | None = None
    in_order: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _ascending(self) -> Link:
        for i, (before, after) in enumerate(pairwise(self.changes), 1):
            if after.at < before.at:
                raise ValueError(f"changes[{i}].at is earlier than the one before it")
        for key, direction in (("loss", self.forward), ("reverse.loss", self.backward)):
            if isinstance(direction.loss, LinkProtection) and isinstance(direction.loss.over, LinkModel):
                raise ValueError(f"{key}.over says what a whole link is like: give it as channel")
        if self.channel is not None and (self.changes or not isinstance(self.loss, losses.NoLoss)):
            raise ValueError("channel says what is lost and what changes: leave out loss and changes")
        return self

    @model_validator(mode="after")
    def _queues_have_rates(self) -> Link:
        for key, direction in (("queue", self.forward), ("reverse.queue", self.backward)):
            rates = (direction.rate, direction.rate_file, *(change.rate for change in self.changes))
            known = self.channel is not None or rates.count(None) < len(rates)
            if direction.queue.kind != "drop_tail" and not known:
                raise ValueError(f"{key} = {direction.queue.kind} has no effect without a rate: nothing ever queues")
        return self

    @model_validator(mode="after")
    def _one_rate(self) -> Link:
        _check_one_rate(self.rate, self.rate_file)
        if (self.begin is None) != (self.end is None):
            raise ValueError("from and to belong together; leave both out for a link of the path")
        return self

    @property
    def ends(self) -> Ends:
        """The nodes that it joins; None for a link of the path."""
        return None if self.begin is None or self.end is None else (self.begin, self.end)

    @property
    def may_reorder(self) -> bool:
        """Whether a packet may overtake another: by jitter, a change of delay, or late retransmissions of a link
        layer."""
        ways = (self.forward, self.backward)
        varies = any(way.jitter is not None or isinstance(way.loss, Trace | LinkProtection) for way in ways)
        return varies or self.channel is not None or any(change.delay is not None for change in self.changes)

    @property
    def may_break(self) -> bool:
        """Whether there may be a time when nothing passes."""
        return self.channel is not None or any(change.outage or change.hold for change in self.changes)

    @property
    def forward(self) -> Direction:
        """The direction in which the data flows."""
        return Direction.model_construct(
            rate=self.rate,
            rate_file=self.rate_file,
            delay=self.delay,
            jitter=self.jitter,
            queue=self.queue,
            loss=self.loss,
        )

    @property
    def backward(self) -> Direction:
        """The direction of the acknowledgements."""
        return self.reverse or Direction.model_construct(
            rate=self.rate,
            rate_file=self.rate_file,
            delay=self.delay,
            jitter=None,
            queue=DropTail(),
            loss=losses.NoLoss(),
        )


class Compare(Part):
    """What to compare: each variant with each chain of proxies, over the same seeds."""

    variants: Names
    proxies: Chains = ("none",)
    seeds: Annotated[Count, Field(le=100_000)] = 20
    first_seed: Annotated[Count, Field(le=MAX_SEED)] = 1


class Keep(Part):
    """What is kept of the runs of `compare` besides their row in `runs`.

    `series` are those of the runs that `runs` names: all tables, the states of their senders alone (`samples` of them
    at most, at even times, where memory is to be bounded however long the run), or nothing.
    """

    runs: Literal["first", "all"] = "first"
    series: Literal["segments", "states", "none"] = "segments"
    samples: Annotated[int, Field(ge=1, le=100_000_000, strict=True)] | None = None

    @model_validator(mode="after")
    def _samples_states(self) -> Keep:
        if self.samples is not None and self.series != "states":
            raise ValueError('samples needs series = "states": segments cannot be sampled')
        if self.series == "none" and self.runs == "all":
            raise ValueError('runs = "all" contradicts series = "none", which keeps nothing of any')
        return self


class Captured(Part):
    """The captured flow that this scenario was made from: the self-check replays it first.

    `variant` is its congestion control, with its `probability`; where it is "auto", the self-check tries `candidates`,
    or all there are. Goodput counts over the last `transfer` of the run. `others` names those of `[[flows]]` that are
    flows of the capture, too.
    """

    input: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    flow_id: Count
    variant: Name = "auto"
    probability: Annotated[float, Field(ge=0, le=1)] | None = None
    candidates: dict[Name, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    transfer: Duration | None = None
    others: tuple[Name, ...] = ()


class Scenario(Part):
    """A whole file. `path` lists the nodes from data sender to receiver; there is one link between neighbours, and the
    links with ends of their own join further nodes."""

    name: str
    duration: Duration
    path: Annotated[tuple[Name, ...], Field(min_length=2)]
    links: Annotated[tuple[Link, ...], Field(min_length=1)]
    flow: Flow = Flow()
    flows: tuple[SharingFlow, ...] = ()
    datagrams: tuple[Datagrams, ...] = ()
    proxy: tuple[Proxy, ...] = ()
    variants: dict[Name, VariantParameters] = Field(default_factory=dict)
    compare: Compare
    keep: Keep = Keep()
    captured: Captured | None = None
    unknowns: tuple[str, ...] = ()
    _rates: dict[str, RateTrace] = PrivateAttr(default_factory=dict)
    _where: str = PrivateAttr(default="scenario")

    @property
    def where(self) -> str:
        """What errors call it: its file."""
        return self._where

    def called(self, where: str) -> Scenario:
        """Let errors call it `where`; return it."""
        self._where = where
        return self

    def read_rate_files(self, folder: Path) -> None:
        """Read the files that links take their rate from, relative to `folder`. ScenarioError, ChannelError."""
        for i, link in enumerate(self.links):
            for key, direction in (("", link.forward), (".reverse", link.backward)):
                name = direction.rate_file
                if name is None or name in self._rates:
                    continue
                path = folder / name_from_text(name)
                if not path.is_file():
                    hint = "its path is relative to the scenario"
                    raise ScenarioError(f"{self.where}: links[{i}]{key}.rate_file: no such file {path}", hint)
                self._rates[name] = read_rates(path)

    def rate_trace(self, name: str) -> RateTrace:
        """The rate over time in the file `name`; ScenarioError if `read_rate_files` has not read it."""
        if name not in self._rates:
            raise ScenarioError(f"{self.where}: rate_file: {name} was not read; give the scenario as a file")
        return self._rates[name]

    def problems(self) -> Iterator[str]:
        """Yield what contradicts itself between the tables, each with its key path."""
        if len(set(self.path)) != len(self.path):
            yield "path: a node is listed twice"
            return  # There is no way between two nodes of a path that meets itself.
        yield from self._grown[1]
        yield from self._problems_of_proxies()
        traced = any(isinstance(way.loss, Trace) for link in self.links for way in (link.forward, link.backward))
        if self.compare.seeds == 0 and not traced:
            yield "compare.seeds: 0 seeds run nothing without a trace to replay; at least 1"
        yield from self._problems_of_links()
        yield from self._problems_of_others()
        yield from self._problems_of_flows()

    @cached_property
    def _grown(self) -> tuple[Tree, list[str]]:
        return grow(self.path, [link.ends for link in self.links])

    @property
    def tree(self) -> Tree:
        """The nodes and how links join them."""
        return self._grown[0]

    def way_of(self, flow: SharingFlow | Datagrams | None = None) -> tuple[str, ...]:
        """The nodes from the sender to the receiver of a flow, both included; None: of the flow under test."""
        if flow is None:
            return self.path
        return self.tree.way(flow.sender or self.path[0], flow.receiver or self.path[-1])

    @property
    def traced_link(self) -> int:
        """The number of the link whose forward losses are a captured trace: in a draft, the bottleneck. Else the
        first one."""
        traced = (number for number, link in enumerate(self.links) if isinstance(link.forward.loss, Trace))
        return next(traced, 0)

    def proxies_of(self, flow: SharingFlow | None = None) -> Proxies:
        """The proxies by name, on the way of a flow; None: of the flow under test."""
        return Proxies(self.proxy, self.way_of(flow))

    def _problems_of_proxies(self) -> Iterator[str]:
        placed = [flow for flow in self.flows if {flow.sender, flow.receiver} - {None} <= set(self.tree.nodes)]
        uses = [(f"compare.proxies[{i}]", self.path, text) for i, text in enumerate(self.compare.proxies)]
        of_flows = [(f"flows[{self.flows.index(flow)}].proxies", self.way_of(flow), flow.proxies) for flow in placed]
        yield from problems_of(self.proxy, self.tree.nodes, (*uses, *of_flows))
        if not self._grown[1]:
            chains = self.proxies_of().chains(self.compare.proxies)
            yield from problems_of_gateways(self.tree, self.links, self.proxy, self.flows, chains)

    def _problems_of_links(self) -> Iterator[str]:
        for i, link in enumerate(self.links):
            for j, change in enumerate(link.changes):
                if change.at >= self.duration:
                    yield f"links[{i}].changes[{j}].at: not before the end of the run"
            if link.in_order and not link.may_reorder:
                yield f"links[{i}].in_order: nothing overtakes where no delay falls or varies; leave it out"

    def _problems_of_flows(self) -> Iterator[str]:
        """Yield what no run would apply."""
        changing = any(link.changes or link.channel is not None for link in self.links)
        breaking = any(link.may_break for link in self.links)
        flows = [("flow", self.flow), *((f"flows[{i}]", flow) for i, flow in enumerate(self.flows))]
        if self.flow.start >= self.duration:
            yield "flow.start: not before the end of the run"
        for i, proxy in enumerate(self.proxy):
            for j, fault in enumerate(proxy.faults):
                if fault.at >= self.duration:
                    yield f"proxy[{i}].faults[{j}].at: not before the end of the run"
        for key, flow in flows:
            if flow.stop is not None and flow.stop >= self.duration:
                yield f"{key}.stop: not before the end of the run"
            if not changing and flow.handover_adaptation not in {None, "off"}:
                yield f"{key}.handover_adaptation: has no effect without a link that changes"
            if not breaking and flow.freeze_warning is not None:
                yield f"{key}.freeze_warning: there is no outage to warn of; give a link changes with outage or hold"
            for own, at in written_at(flow.application):
                if flow.start < self.duration <= flow.start + at:
                    yield f"{key}.application.{own}: not before the end of the run, counted from the flow's start"

    def _problems_of_others(self) -> Iterator[str]:
        names, used = ["flow"], self.tree.links(self.path)
        for key, other in self._others():
            if other.name in names:
                yield f"{key}.name: {other.name!r} is there twice ('flow' is the flow under test)"
            names.append(other.name)
            if other.start >= self.duration:
                yield f"{key}.start: not before the end of the run"
            ends = (("from", other.sender), ("to", other.receiver))
            unknown = [(end, name) for end, name in ends if name is not None and name not in self.tree.nodes]
            for end, name in unknown:
                yield f"{key}.{end}: {name!r} is not a node of the path{suggestion(name, self.tree.nodes)}"
            if not unknown:
                way = self.way_of(other)
                used |= self.tree.links(way)
                if len(way) == 1:
                    yield f"{key}.to: {way[0]!r} is the node that sends"
        for i, link in enumerate(self.links):
            if link.ends and i not in used and not self._grown[1]:
                leaf = link.end if self.tree.joints[link.ends[1]][1] == i else link.begin
                yield f"links[{i}]: no flow uses it; let one of [[flows]] begin or end at {leaf!r}, or leave it out"

    def _others(self) -> list[tuple[str, SharingFlow | Datagrams]]:
        flows = [(f"flows[{i}]", flow) for i, flow in enumerate(self.flows)]
        return [*flows, *((f"datagrams[{i}]", datagrams) for i, datagrams in enumerate(self.datagrams))]


def load_scenario(path: Path, known_variants: tuple[str, ...]) -> Scenario:
    """Read a scenario file.

    `known_variants` are the engine's names. Raises ScenarioError with file, key path and allowed values, ChannelError
    if a `rate_file` gives no rate, MachineError if the file cannot be read.
    """
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ScenarioError(f"{path}: no such scenario file") from error
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}") from error
    try:
        data = tomllib.loads(raw.decode())
    except (ValueError, RecursionError) as error:  # No text, no TOML, a number of thousands of digits, too deep.
        raise ScenarioError(f"{path}: not a TOML file: {error}", "see docs/scenario.md for an example") from error
    scenario = parse_scenario(data, str(path), known_variants, path.parent)
    scenario.read_rate_files(path.parent)
    return scenario


def parse_scenario(
    data: dict[str, Any], where: str, known_variants: tuple[str, ...], folder: Path = Path()
) -> Scenario:
    """Validate the contents of a scenario file; `where` names it in errors. Raises ScenarioError.

    Files that a channel names are looked for in `folder`.
    """
    _refuse_old_proxy(data, where)
    if isinstance(data.get("proxy"), list) and isinstance(data.get("path"), list):
        try:
            data = {**data, "proxy": with_presets(data["proxy"], data["path"], data.get("links"))}
        except ValueError as error:
            raise ScenarioError(f"{where}: {error}") from None
    try:
        scenario = Scenario.model_validate(data, context={"folder": str(folder)}).called(where)
    except ValidationError as error:
        raise refusal(where, [(line, None) for line in describe(error, _TABLES)]) from None
    problems = [*((line, None) for line in scenario.problems()), *_problems_of_variants(scenario, known_variants)]
    if problems:
        raise refusal(where, problems)
    return scenario


def _refuse_old_proxy(data: Mapping[str, Any], where: str) -> None:
    """Raise ScenarioError for a `[proxy]` of earlier development versions, with the text that says the same now."""
    old = data.get("proxy")
    if not isinstance(old, dict):
        return
    flows = data.get("flows")
    nodes = nodes_named([data.get("compare"), *(flows if isinstance(flows, list) else ())]) or ["relay"]
    first = "proxy: [proxy] has become [[proxy]], a table for each proxy; write instead:"
    raise ScenarioError(f"{where}: {first}", None, tuple(new_text(old, nodes).splitlines()))


Problem = tuple[str, str | None]
"""What is wrong, with its key path, and a hint."""

MAX_SHOWN = 10
"""Errors of one file that are shown."""


def refusal(where: str, problems: Sequence[Problem]) -> ScenarioError:
    """Return the error that shows all `problems` of the file `where`, up to MAX_SHOWN."""
    (first, hint), *others = problems
    lines = [line for line, _ in others[: MAX_SHOWN - 1]]
    beyond = len(problems) - 1 - len(lines)
    if beyond:
        lines.append(f"{beyond} more {'error' if beyond == 1 else 'errors'}")
    return ScenarioError(f"{where}: {first}", hint, tuple(f"{where}: {line}" for line in lines))


def _problems_of_variants(scenario: Scenario, known_variants: tuple[str, ...]) -> Iterator[Problem]:
    for name, tuned in scenario.variants.items():
        if tuned.variant not in known_variants:
            yield _unknown_variant(f"variants.{name}.variant", tuned.variant, known_variants)
            continue
        if name in known_variants:
            yield f"variants.{name}: there is a variant of that name; choose another", None
        yield from ((f"variants.{name}.{line}", None) for line in tuned.problems())
    named = [(f"compare.variants[{i}]", v) for i, v in enumerate(scenario.compare.variants)]
    proxies = enumerate(scenario.proxy)
    named += [(f"proxy[{i}].variant", proxy.variant) for i, proxy in proxies if proxy.variant is not None]
    if scenario.captured is not None and scenario.captured.variant != "auto":
        named.append(("captured.variant", scenario.captured.variant))
    named += [(f"flows[{i}].variant", flow.variant) for i, flow in enumerate(scenario.flows)]
    allowed = (*known_variants, *scenario.variants)
    for key, variant in named:
        if variant not in allowed:
            yield _unknown_variant(key, variant, allowed)
    unnamed = sorted(set(scenario.variants).difference(variant for _, variant in named))
    by = "compare.variants or the variant of one of [[proxy]] or [[flows]]"
    yield from ((f"variants.{name}: nothing runs it; name it in {by}, or leave it out", None) for name in unnamed)
    yield from ((line, None) for line in _contradictions_of_stacks(scenario))


def _contradictions_of_stacks(scenario: Scenario) -> Iterator[str]:
    """Yield what contradicts itself between the stack of a flow, of its variant and of its proxies."""
    tuned = scenario.variants
    flows: list[tuple[Flow, SharingFlow | None, str, tuple[str, ...]]]
    flows = [(flow, flow, flow.variant, flow.proxies) for flow in scenario.flows]
    for variant in scenario.compare.variants:
        flows += [(scenario.flow, None, variant, (chain,)) for chain in scenario.compare.proxies]
    found = []
    for flow, other, variant, names in flows:
        own = tuned[variant].stack if variant in tuned else None
        if own is not None:
            found.append((f"variants.{variant}.stack", StackLayers(flow, own).contradiction()))
        try:
            chain = [proxy for name in names for proxy in scenario.proxies_of(other).chain(name)]
        except (ValueError, KeyError):
            continue
        for proxy in chain:
            of_proxy = tuned.get(proxy.variant or variant)
            layers = StackLayers(flow, None if of_proxy is None else of_proxy.stack, proxy.stack)
            if proxy.stack is not None:
                found.append((f"proxy[{scenario.proxy.index(proxy)}].stack", layers.contradiction()))
    yield from dict.fromkeys(f"{key}: {wrong}" for key, wrong in found if wrong is not None)


def _unknown_variant(where: str, variant: str, known: tuple[str, ...]) -> Problem:
    guess = suggest_variant(variant, known, lead="; ")
    return f"{where}: unknown variant {variant!r}{guess}", f"allowed: {', '.join(known)}"


def check_variant(where: str, variant: str, known_variants: tuple[str, ...]) -> None:
    """Raise ScenarioError unless `variant` is known, with the most similar name."""
    if variant not in known_variants:
        raise ScenarioError(*_unknown_variant(where, variant, known_variants))


_LOSS_MODELS: dict[str, type[BaseModel]] = {
    "none": losses.NoLoss,
    "bernoulli": losses.Bernoulli,
    "ber": losses.BitErrors,
    "gilbert_elliott": losses.GilbertElliott,
    "four_state": losses.FourState,
    "markov": losses.Markov,
    "gilbert_elliott_time": losses.GilbertElliottTime,
    "markov_time": losses.MarkovTime,
    "arq": Arq,
    "fec": Fec,
    "trace": Trace,
}
_PARTS: dict[str, type[BaseModel]] = {
    "jitter": Jitter,
    "links": Link,
    "reverse": Direction,
    "changes": Change,
    "flow": Flow,
    "flows": SharingFlow,
    "datagrams": Datagrams,
    "proxy": Proxy,
    "faults": Fault,
    "stack": LegStack,
    "compare": Compare,
    "keep": Keep,
    "captured": Captured,
    **_LOSS_MODELS,
    **APPLICATIONS,
    **QUEUES,
}
_TABLES = Tables(
    Scenario,
    _PARTS,
    {
        "loss": ("model", tuple(_LOSS_MODELS)),
        "application": ("kind", tuple(APPLICATIONS)),
        "queue": ("kind", tuple(QUEUES)),
    },
)
