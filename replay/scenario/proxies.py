"""The proxies of a scenario file: `[[proxy]]` tables by name, chains of them, and the stack of each connection.

Depends on the keys of the file and of the engine (`hindflight._native.replay`), not on how a proxy works. Read
docs/proxies.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator

from hindflight.channels.models.parameters import LONGEST_NS
from hindflight.replay.scenario.flows import STACK, Flow, LegStack, Stack, of_engine
from hindflight.replay.scenario.quantities import MAX_PKTS, Name, Part, Time
from hindflight.replay.scenario.validation_errors import suggestion
from hindflight.replay.scenario.variant_parameters import VariantParameters, variant_config
from hindflight.toolkit.units import PACKETS, RATE, SIZE, TIME

MAX_CONNECTIONS = 1_000_000_000
"""Upper bound of a limit of connections."""
NO_PROXY = "none"
"""What `compare.proxies` calls a path without a proxy."""
JOIN = "+"
"""What joins the names of a chain."""


def _own_name(name: str) -> str:
    if name == NO_PROXY:
        raise ValueError(f"{name!r} is the path without a proxy; choose another name")
    if JOIN in name:
        raise ValueError(f"{name!r}: {JOIN} joins proxies to a chain in compare.proxies; choose a name without it")
    return name


@dataclass(frozen=True, slots=True)
class BufferSize:
    """The size of a buffer: packets, which are full segments of the connection that fills it, or octets."""

    pkts: int | None = None
    size_bytes: int | None = None

    def engine(self) -> dict[str, int]:
        """Return the engine's configuration."""
        return {"pkts": self.pkts} if self.pkts is not None else {"bytes": self.size_bytes or 0}


ERROR_FACTORS = {"none": 1, "low": 2, "high": 4}
"""Buffers in peak-rate-delay products by error level (Shang et al. 2005): high is their 3 to 4."""


def _by_rule(table: Mapping[str, object]) -> BufferSize:
    """Return the octets of a peak rate times a delay, times a factor for losses."""
    if set(table) - {"rate", "rtt", "errors"} or not {"rate", "rtt"} <= set(table):
        raise ValueError('a buffer by rule is { rate = "400 kbit/s", rtt = "480 ms", errors = "low" }')
    errors = table.get("errors", "none")
    if not isinstance(errors, str) or errors not in ERROR_FACTORS:
        raise ValueError(f"errors = {errors!r} is not allowed; allowed: {', '.join(ERROR_FACTORS)}")
    octets = RATE.parse(table["rate"]) * TIME.parse(table["rtt"]) / 8e9
    if octets * ERROR_FACTORS[str(errors)] < 1:
        raise ValueError("rate times rtt is less than an octet; a buffer has at least those of a full segment")
    return BufferSize(size_bytes=round(ERROR_FACTORS[str(errors)] * octets))


def _buffer_size(text: object) -> BufferSize:
    if isinstance(text, BufferSize):
        return text
    if isinstance(text, dict):
        size = _by_rule(text)
    elif isinstance(text, str) and text.strip().endswith("B"):
        size = BufferSize(size_bytes=round(SIZE.parse(text)))
    else:
        size = BufferSize(pkts=round(PACKETS.parse(text)))
    if (size.pkts or size.size_bytes or 0) < 1:
        raise ValueError(f"{text!r} holds nothing; at least 1 pkt, or the octets of a full segment")
    if (size.pkts or 0) > MAX_PKTS or (size.size_bytes or 0) > 2**40:
        raise ValueError(f"{text!r} is out of range; at most {MAX_PKTS} pkts or 1 TiB")
    return size


Buffer = Annotated[BufferSize, PlainValidator(_buffer_size)]


class Fault(Part):
    """What befalls a proxy at a time since the start of the run. A move may transfer the state of the connections."""

    at: Annotated[Time, Field(le=LONGEST_NS)]
    kind: Literal["restart", "failure", "corruption", "move"]
    transfer: Annotated[Time, Field(gt=0, le=LONGEST_NS)] | None = None

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        config = {"at_ns": self.at, "kind": self.kind}
        return config if self.transfer is None else {**config, "transfer_ns": self.transfer}


_KEYS_OF_AGENTS = {"name", "node", "kind", "receive_buffer", "faults"}
"""Keys of a proxy that does not split the connection."""
_KEYS_OF_GATEWAYS = {"name", "node", "kind", "peer", "layer"}
"""Keys of two gateways that protect the links between them."""


class Proxy(Part):
    """A proxy at a node: it splits the connection and opens one onward, or does something else with its segments.
    docs/proxies.md has the policies."""

    name: Annotated[Name, AfterValidator(_own_name)]
    node: Name
    kind: Literal["split", "ack_filter", "snoop", "spoofing", "arq", "fec"] = "split"
    peer: Name | None = None
    layer: dict[str, Any] | None = None
    variant: Name | None = None
    stack: LegStack | None = None
    receive_buffer: Buffer | None = None
    send_buffer: Buffer | None = None
    pool: Literal["own", "shared"] = "own"
    acknowledge: Literal["on_receipt", "after_forwarding", "on_delivery"] = "on_receipt"
    advertise: Literal["half_free", "third", "free", "sockets"] = "half_free"
    forward_window: Literal["unlimited", "third"] = "unlimited"
    handshake: Literal["accept", "hold"] = "accept"
    max_connections: Annotated[int, Field(ge=1, le=MAX_CONNECTIONS, strict=True)] | None = None
    resume_connections: Annotated[int, Field(ge=0, le=MAX_CONNECTIONS, strict=True)] | None = None
    beyond: Literal["refuse", "pass"] = "refuse"
    idle_timeout: Annotated[Time, Field(gt=0, le=LONGEST_NS)] | None = None
    pending_timeout: Annotated[Time, Field(gt=0, le=LONGEST_NS)] | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def protects(self) -> bool:
        """Whether it protects links, and sees no connection."""
        return self.kind in {"arq", "fec"}

    @property
    def begins_leg(self) -> bool:
        """Whether a leg of the connection begins at it in a run: not if it changes links or their queues only."""
        return not self.protects and self.kind != "ack_filter"

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration but for the variant and the stack."""
        if self.kind != "split":
            agent: dict[str, Any] = {"node": self.node, "kind": self.kind}
            if self.receive_buffer is not None:
                agent["receive_buffer"] = self.receive_buffer.engine()
            return {**agent, "faults": [fault.engine() for fault in self.faults]}
        return {
            "node": self.node,
            "receive_buffer": None if self.receive_buffer is None else self.receive_buffer.engine(),
            "send_buffer": None if self.send_buffer is None else self.send_buffer.engine(),
            **({"pool": self.name} if self.pool == "shared" else {}),
            "acknowledge": self.acknowledge,
            "advertise": self.advertise,
            "forward_window": self.forward_window,
            "handshake": self.handshake,
            **self._limits(),
            "faults": [fault.engine() for fault in self.faults],
        }

    def _limits(self) -> dict[str, Any]:
        limit = {
            "name": self.name,
            "max_connections": self.max_connections,
            "resume_connections": self.resume_connections,
            "beyond": self.beyond,
        }
        limits = {
            "limit": None if self.max_connections is None else limit,
            "idle_timeout_ns": self.idle_timeout,
            "pending_timeout_ns": self.pending_timeout,
        }
        return {key: value for key, value in limits.items() if value is not None}

    def problems(self) -> Iterator[str]:
        """Yield what contradicts itself in it, each with its key."""
        if self.kind != "split":
            yield from self._problems_of_agent()
            return
        for key in ("peer", "layer"):
            if key in self.model_fields_set:
                yield f'{key}: is a key of kind = "arq" and "fec"'
        if self.advertise == "sockets":
            own = ("receive_buffer", "send_buffer")
            yield from (
                f'{key}: has no effect with advertise = "sockets", whose buffers are keys of the stacks'
                for key in own
                if getattr(self, key) is not None
            )
            if self.pool == "shared":
                yield 'pool: has no effect with advertise = "sockets", whose memory is that of the sockets'
            if self.forward_window != "unlimited":
                yield 'forward_window: has no effect with advertise = "sockets"'
            if self.acknowledge == "on_delivery":
                yield 'acknowledge: sockets acknowledge on receipt; "on_delivery" contradicts advertise = "sockets"'
        if self.stack is not None and self.stack.close is not None:
            yield "stack.close: whether connections close is a key of the flow"
        yield from self._problems_of_limit()
        yield from self._problems_of_faults()

    def _problems_of_agent(self) -> Iterator[str]:
        allowed = {"name", "node", "kind"} if self.kind == "ack_filter" else _KEYS_OF_AGENTS
        allowed = _KEYS_OF_GATEWAYS if self.protects else allowed
        for key in type(self).model_fields:
            if key in self.model_fields_set - allowed:
                yield f'{key}: has no effect with kind = "{self.kind}", which does not split the connection'
        if self.protects and self.peer is None:
            yield 'peer: this key is missing; it is the node of the gateway at the other end, as in peer = "G"'
        if self.kind == "ack_filter" or self.protects:
            return
        for i, fault in enumerate(self.faults):
            if fault.kind == "corruption":
                yield f'faults[{i}].kind: with kind = "{self.kind}" the checksum of the sender shows a damaged segment'
        yield from self._problems_of_faults()

    def _problems_of_limit(self) -> Iterator[str]:
        if self.max_connections is None:
            for key in ("resume_connections", "beyond"):
                if key in self.model_fields_set:
                    yield f"{key}: has no effect without max_connections"
        elif self.resume_connections is not None and self.resume_connections >= self.max_connections:
            yield f"resume_connections: must be below max_connections = {self.max_connections}"

    def _problems_of_faults(self) -> Iterator[str]:
        for before, (i, after) in zip(self.faults, enumerate(self.faults[1:], 1), strict=False):
            if after.at < before.at:
                yield f"faults[{i}].at: earlier than the one before it"
            if before.kind == "failure":
                yield f"faults[{i}]: has no effect, because the proxy has failed; leave it out"
        for i, fault in enumerate(self.faults):
            if fault.transfer is not None and fault.kind != "move":
                yield f'faults[{i}].transfer: only a fault of kind "move" transfers the state of the connections'


@dataclass(frozen=True, slots=True)
class Proxies:
    """The `[[proxy]]` tables of a file, on the way of a flow. A node without a table has a proxy of its name with
    defaults."""

    tables: tuple[Proxy, ...]
    way: tuple[str, ...]

    def chain(self, text: str) -> tuple[Proxy, ...]:
        """Return the proxies that `text` names, in the order of the way: ValueError with what is wrong.

        `text` is `none`, the name of a table, a node, or several of these joined by `+`.
        """
        if text == NO_PROXY:
            return ()
        # A node may have a name with a +.
        names = [text] if self._find(text) else text.split(JOIN)
        return self.joined(names)

    def chains(self, texts: Sequence[str]) -> list[tuple[Proxy, ...]]:
        """Return the chains that `texts` name; an empty one where a text is wrong, which `problems_of` says."""
        found = []
        for text in texts:
            try:
                found.append(self.chain(text))
            except ValueError:
                found.append(())
        return found

    def joined(self, names: Sequence[str]) -> tuple[Proxy, ...]:
        """Return the proxies of these names, in the order of the way: ValueError with what is wrong."""
        for name in names:
            if name == NO_PROXY:
                raise ValueError(f"{name!r} is the path without a proxy, and stands alone")
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is there twice")
        found = [self._named(name) for name in names]
        by_node: dict[str, Proxy] = {}
        for proxy in found:
            other = by_node.setdefault(proxy.name if proxy.protects else proxy.node, proxy)
            if other is not proxy:
                raise ValueError(f"{other.name!r} and {proxy.name!r} are both at node {proxy.node!r}")
        return tuple(sorted(found, key=lambda proxy: self.way.index(proxy.node)))

    def _find(self, name: str) -> Proxy | None:
        for proxy in self.tables:
            if proxy.name == name:
                return proxy
        if name in self.way[1:-1]:
            return Proxy.model_construct(name=name, node=name)
        return None

    def _named(self, name: str) -> Proxy:
        found, inner = self._find(name), self.way[1:-1]
        if found is None:
            known = (*(proxy.name for proxy in self.tables), *inner)
            # The names of an old file are nodes.
            what = "is neither a [[proxy]] nor a node between sender and receiver"
            raise ValueError(f"{name!r} {what}{suggestion(name, tuple(dict.fromkeys((NO_PROXY, *known))))}")
        if found.node not in (self.way if found.protects else inner):
            allowed = ", ".join(inner) or "there is none"
            raise ValueError(f"{found.node!r} is not a node between its ends; allowed: {allowed}")
        return found

    def number(self, proxy: Proxy) -> int | None:
        """Return the number of its table; None for that of a plain node."""
        return next((i for i, table in enumerate(self.tables) if table is proxy), None)


def problems_of(
    tables: Sequence[Proxy], nodes: Sequence[str], uses: Sequence[tuple[str, tuple[str, ...], str | tuple[str, ...]]]
) -> Iterator[str]:
    """Yield what is wrong with the `[[proxy]]` tables and with what names them, each with its key path.

    `nodes` are those of the file; `uses` the key that names proxies, the way of its flow, and a chain or names.
    """
    names: list[str] = []
    inner = tuple(dict.fromkeys(node for _, way, _ in uses for node in way[1:-1]))
    astray: set[str] = set()
    for i, proxy in enumerate(tables):
        if proxy.name in names:
            yield f"proxy[{i}].name: {proxy.name!r} is there twice"
        elif proxy.name in nodes and proxy.name != proxy.node:
            yield f"proxy[{i}].name: {proxy.name!r} is a node, and this proxy is at another; choose another name"
        names.append(proxy.name)
        if proxy.peer is not None and proxy.peer not in nodes:
            yield f"proxy[{i}].peer: {proxy.peer!r} is not a node of the path{suggestion(proxy.peer, nodes)}"
        if proxy.node not in inner and not (proxy.protects and proxy.node in nodes):
            astray.add(proxy.name)
            yield f"proxy[{i}].node: {_astray(proxy.node, nodes, inner)}"
        yield from (f"proxy[{i}].{line}" for line in proxy.problems())
    used: set[str] = set()
    compared: dict[tuple[str, ...], str] = {}
    for key, way, named in uses:
        proxies = Proxies(tuple(tables), way)
        try:
            found = proxies.chain(named) if isinstance(named, str) else proxies.joined(named)
            used.update(proxy.name for proxy in found)
            if isinstance(named, str):
                first = compared.setdefault(tuple(proxy.name for proxy in found), named)
                if first != named:
                    yield f"{key}: {named!r} is the same chain as {first!r}; it is in the order of the path"
        except ValueError as error:
            mentioned = {named, *named.split(JOIN)} if isinstance(named, str) else set(named)
            used |= mentioned
            if not astray & mentioned:
                yield f"{key}: {error}"
    for i, proxy in enumerate(tables):
        if proxy.name not in used | astray:
            where = "compare.proxies or in the proxies of one of [[flows]]"
            yield f"proxy[{i}]: no flow uses {proxy.name!r}; name it in {where}, or leave it out"


def _astray(node: str, nodes: Sequence[str], inner: Sequence[str]) -> str:
    """Return what is wrong with a proxy at a node that is not between the ends of a flow."""
    if node not in nodes:
        return f"{node!r} is not a node of the path{suggestion(node, nodes)}"
    allowed = ", ".join(inner) or "there is none"
    return f"{node!r} is an end of the path; a proxy needs a node between its ends: {allowed}"


class StackLayers:
    """The stack of one connection: that of the flow, then that of its variant, then that of the proxy that opens it.

    A layer with a `profile` leaves nothing of those before it.
    """

    def __init__(self, flow: Flow, *layers: LegStack | None) -> None:
        self.profile: str = flow.profile
        self.values: dict[str, Any] = flow.overrides()
        for layer in layers:
            if layer is None:
                continue
            if layer.profile is not None:
                self.profile, self.values = layer.profile, {}
            self.values |= layer.overrides()

    @property
    def engine_profile(self) -> str:
        """The engine's profile."""
        return of_engine(self.profile)[0]

    def _all(self) -> dict[str, Any]:
        """Return what differs from the engine's profile, by the keys of the file."""
        values = of_engine(self.profile)[1]
        if self.values.get("sack") is False:
            # A recovery of the profile that reads SACK gives way.
            values = {key: value for key, value in values.items() if key not in {"recovery", "tail_loss_probe"}}
        if "recovery" in self.values:
            values.pop("tail_loss_probe", None)
        if "receive_buffer" in self.values:
            values.pop("receive_buffer_max", None)
        return values | self.values

    def contradiction(self) -> str | None:
        """Return what contradicts itself between the layers."""
        try:
            Stack.model_construct(**self._all()).check_agreement()
        except ValueError as error:
            return str(error)
        return None

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration of what differs from the profile."""
        return {STACK[key]: value for key, value in self._all().items()}


def flow_config(flow: Flow, variant: str, tuned: Mapping[str, VariantParameters]) -> dict[str, Any]:
    """Return the engine's configuration of a flow of `variant`, but for its name, its ends and its proxies."""
    layers = StackLayers(flow, _stack_of(variant, tuned))
    own = {"profile": layers.engine_profile, "stack": layers.engine()}
    return {**variant_config(variant, tuned), **flow.engine_flow(), **own}


def proxy_config(proxy: Proxy, flow: Flow, variant: str, tuned: Mapping[str, VariantParameters]) -> dict[str, Any]:
    """Return the engine's configuration of a proxy of a flow of `variant`: its connection has the variant of its table,
    or else the flow's."""
    if proxy.kind != "split":
        return proxy.engine()
    own = proxy.variant or variant
    of_flow = StackLayers(flow, _stack_of(variant, tuned))
    layers = StackLayers(flow, _stack_of(own, tuned), proxy.stack)
    config = {**proxy.engine(), **variant_config(own, tuned)}
    if (layers.profile, layers.values) == (of_flow.profile, of_flow.values):
        return config
    overrides = {key: value for key, value in layers.engine().items() if key != "close"}
    return {**config, "stack": {"profile": layers.engine_profile, "overrides": overrides}}


def _stack_of(variant: str, tuned: Mapping[str, VariantParameters]) -> LegStack | None:
    found = tuned.get(variant)
    return None if found is None else found.stack


def nodes_named(tables: Sequence[object]) -> list[str]:
    """Return what the `proxies` of these tables of an old file name, each once; other faults of it do not matter."""
    lists = [table.get("proxies") for table in tables if isinstance(table, dict)]
    named = [str(name) for names in lists if isinstance(names, list) for name in names]
    return [name for name in dict.fromkeys(named) if name != NO_PROXY]


def new_text(old: Mapping[str, Any], nodes: Sequence[str]) -> str:
    """Return the `[[proxy]]` tables that say what a `[proxy]` said, one for each of `nodes`."""
    lines = []
    for node in nodes:
        lines += ["[[proxy]]", f'name = "{node}"', f'node = "{node}"']
        for key, value in old.items():
            lines.append(f'{"receive_buffer" if key == "buffer" else key} = "{value}"')
        if old.get("advertise") == "third":
            lines.append('forward_window = "third"')
    return "\n".join(lines)
