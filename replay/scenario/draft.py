"""A first scenario file from a capture: estimates with their intervals, and what is not known.

Writes text for people to edit; does not depend on captures or the engine. The result reads back with `model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hindflight.replay.scenario.captured_application import CapturedWrites
from hindflight.replay.scenario.draws import UNKNOWN_QUEUE_PKTS
from hindflight.replay.scenario.proposals import FAR, NEAR, PathFacts, ProxyTable, nodes_of, tables_of
from hindflight.toolkit.text import printable
from hindflight.toolkit.units import format_rate, format_time


@dataclass(frozen=True, slots=True)
class Value:
    """An estimate with its 95 % interval, in base units (bit/s, ns, packets), and how it was got."""

    value: float
    low: float | None
    high: float | None
    how: str


@dataclass(frozen=True, slots=True)
class SendBuffer:
    """Memory of a sender for octets that are written and not acknowledged: at first, and the most that it grows to."""

    first_bytes: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Stack:
    """The sender and its peer as the capture shows them.

    `flight_pkts` is what was in flight where the capture begins in mid-flow, else None: the replay starts with it.
    `initial_window_pkts`, `receive_buffer_bytes`, `sack` and `timestamps` are None where the capture lacks the
    handshake, the first one also where the application wrote less. `send_buffer` is None where it decides nothing.
    """

    mss_bytes: int
    header_bytes: int
    initial_window_pkts: int | None
    receive_buffer_bytes: int | None
    profile: str = "linux"
    sack: bool | None = None
    timestamps: bool | None = None
    flight_pkts: int | None = None
    send_buffer: SendBuffer | None = None


@dataclass(frozen=True, slots=True)
class LinkChange:
    """What the trace says changed at `at_ns` after the flow's start; None where it stayed. `note` becomes a comment."""

    at_ns: int
    rate_bps: float | None = None
    round_trip_ns: float | None = None
    outage: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class OtherFlow:
    """A flow of the same capture on the same path: its start after that of the run, its stack and what it wrote, from
    `first_write_ns` after its start."""

    name: str
    variant: str
    start_ns: int
    stack: Stack
    application: CapturedWrites | None
    first_write_ns: int
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything that a scenario file needs. `rate` and `queue` are None where the capture does not show them."""

    name: str
    duration_ns: int
    trace_file: str
    block_pkts: int
    rate: Value | None
    round_trip: Value
    queue: Value | None
    stack: Stack
    input_name: str
    input_sha256: str
    flow_id: int
    variant: str
    variants: Sequence[str]
    seeds: int
    proxies: Sequence[str] = ("none", "relay")
    changes: Sequence[LinkChange] = field(default_factory=tuple)
    unknowns: Sequence[str] = field(default_factory=tuple)
    application: CapturedWrites | None = None
    transfer_ns: int | None = None
    probability: float | None = None
    candidates: Mapping[str, float] = field(default_factory=dict)
    others: Sequence[OtherFlow] = field(default_factory=tuple)
    facts: PathFacts = field(default_factory=PathFacts)

    @property
    def proxy_tables(self) -> list[ProxyTable]:
        """The tables of the proxies that the comparison names."""
        return tables_of(self.proxies, self.facts)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes where a proxy may stand."""
        return nodes_of(self.proxy_tables, self.proxies)

    @property
    def relay(self) -> bool:
        """Whether the path has a node where a proxy may stand."""
        return bool(self.nodes)


RELAY_SHARE = 0.5
"""Position of the relay, as a share of the path's delay: a capture does not show it; a satellite is midway."""

SIDE_NS = 100_000
"""One-way delay of the network of an end, in which a proxy may stand; at most SIDE_SHARE of the path's."""
SIDE_SHARE = 0.01

BULK_WRITE_BYTES = 65_536
"""What a bulk sender writes by one call into its send buffer. It writes when a third of the buffer is free; one that
filled each free octet would have more in flight."""


def draft_scenario(draft: Draft) -> str:
    """Return the text of a scenario file: sender, receiver, losses before the relay midway; nodes for proxies."""
    lines = [
        f"# Drafted from {printable(draft.input_name)}, flow {draft.flow_id}. Estimates carry their 95 % interval; "
        "edit freely.",
        f"name = {_toml(draft.name)}",
        f"duration = {_toml(format_time(draft.duration_ns))}",
        f"path = {_toml(['sender', *draft.nodes, 'receiver'])}",
        "unknowns = [",
        *(f"  {_toml(sentence)}," for sentence in draft.unknowns),
        "]",
        "",
        *_link_lines(draft),
        "",
        *_flow_lines(draft),
        "",
        *_proxy_lines(draft.proxy_tables),
        "[compare]",
        f"variants = {_toml(list(draft.variants))}",
        f"proxies = {_toml(list(draft.proxies))}",
        f"seeds = {draft.seeds}",
        "",
        "[captured]",
        f"input = {_toml(draft.input_name)}",
        f"sha256 = {_toml(draft.input_sha256)}",
        f"flow_id = {draft.flow_id}",
        f'variant = {_toml(draft.variant)}  # "auto": not known; the self-check tries the candidates',
        *_variant_lines(draft),
        *_transfer_lines(draft.transfer_ns),
        *_others_lines(draft.others),
        "",
    ]
    return "\n".join(lines)


def _variant_lines(draft: Draft) -> list[str]:
    """How sure the variant is."""
    candidates = ", ".join(f"{name} = {share:.3f}" for name, share in draft.candidates.items())
    probability = [] if draft.probability is None else [f"probability = {draft.probability:.3f}"]
    return [*probability, *([f"candidates = {{ {candidates} }}"] if candidates else [])]


def _transfer_lines(transfer_ns: int | None) -> list[str]:
    """The time over which goodput counts, where it is not the whole run."""
    if transfer_ns is None:
        return []
    comment = "from the first data packet to the last new one, or to the FIN after a pause like those before"
    return [f"transfer = {_toml(format_time(transfer_ns))}  # {comment}"]


def _others_lines(others: Sequence[OtherFlow]) -> list[str]:
    """Which of the flows are of the capture, where there are any."""
    names = [other.name for other in others]
    comment = "as long as [[flows]] are these, the self-check replays their packets as captured"
    return [f"others = {_toml(names)}  # {comment}"] if names else []


def _link_lines(draft: Draft) -> list[str]:
    """The bottleneck, and behind the relay a second hop; before and behind them the network of an end with a proxy."""
    share = RELAY_SHARE if draft.relay else 1.0
    round_trip = _less(draft.round_trip, _second_hop_ns(draft, _first_bps(draft)))
    one_way_ns = round_trip.value / 2
    up_ns, down_ns = (round(_hop_ns(draft, one_way_ns, first=first)) for first in (True, False))
    what = "half of the delay" if draft.relay else "the delay"
    lines = [
        *_side_lines(draft, NEAR, "access"),
        "[[links]]",
        f'name = "{"uplink" if draft.relay else "path"}"  # the bottleneck: queue, captured losses, {what}',
        *_rate_lines(draft.rate),
        _delay_line(up_ns, round_trip, share),
        _queue_line(draft.queue),
        f'loss = {{ model = "trace", file = {_toml(draft.trace_file)}, block = "{draft.block_pkts} pkts" }}',
        *_reverse_lines(draft.rate, up_ns),
        *_change_lines(draft, first=True),
    ]
    if not draft.relay:
        return lines
    return [
        *lines,
        "",
        "[[links]]",
        'name = "downlink"  # behind the relay; its rate is assumed equal, its losses are in the trace of the uplink',
        *_assumed_lines(draft),
        f'delay = "{format_time(down_ns)}"  # one way; {100 * (1 - RELAY_SHARE):.0f} % of the path by assumption',
        *_reverse_lines(draft.rate, down_ns),
        *_change_lines(draft, first=False),
        *_side_lines(draft, FAR, "egress"),
    ]


def _side_lines(draft: Draft, node: str, name: str) -> list[str]:
    """The network of an end in which a proxy may stand: short, and never full."""
    if node not in draft.nodes:
        return []
    delay = format_time(_side_ns(draft, node))
    lines = ["[[links]]", f'name = "{name}"', f'delay = "{delay}"  # a local network, by assumption']
    return [*lines, ""] if node == NEAR else ["", *lines]


def _side_ns(draft: Draft, node: str) -> int:
    """Its one-way delay, which no change of the path changes; a link has at least a nanosecond."""
    if node not in draft.nodes:
        return 0
    return max(1, round(min(SIDE_NS, SIDE_SHARE * draft.round_trip.value / 2)))


def _hop_ns(draft: Draft, one_way_ns: float, *, first: bool) -> float:
    """The delay of the hop before the relay, or of that behind it, out of a one-way delay of the path; at least a
    nanosecond."""
    share = (RELAY_SHARE if draft.relay else 1.0) if first else 1 - RELAY_SHARE
    return max(1.0, share * one_way_ns - _side_ns(draft, NEAR if first else FAR))


def _flow_lines(draft: Draft) -> list[str]:
    """The flow under test and those that share its path: their applications and their stacks."""
    first_ns = draft.duration_ns - (draft.transfer_ns or draft.duration_ns)
    lines = ["[flow]", *_application_lines(draft.application, first_ns, draft.stack), *_stack_lines(draft.stack)]
    for other in draft.others:
        bulk = _bulk_lines(other.size_bytes, other.stack)
        timed = _application_lines(other.application, other.first_write_ns, other.stack)
        lines += [
            "",
            "[[flows]]  # also in the capture",
            f"name = {_toml(other.name)}",
            f"variant = {_toml(other.variant)}",
            f"start = {_toml(format_time(other.start_ns))}",
            *(bulk if other.application is None else timed),
            *_stack_lines(other.stack),
        ]
    return lines


def _stack_lines(stack: Stack) -> list[str]:
    return [
        f'mss = "{stack.mss_bytes} B"',
        f'headers = "{stack.header_bytes} B"  # IP and TCP with options, per data packet',
        *_window_lines(stack),
        *_buffer_lines(stack.receive_buffer_bytes),
        *(f"{name} = {_toml(value)}" for name, value in _options(stack)),
        f"profile = {_toml(stack.profile)}  # timers and recovery of the stack",
    ]


def _options(stack: Stack) -> list[tuple[str, bool]]:
    """The options of the handshake that differ from what every profile has."""
    options = (("sack", stack.sack), ("timestamps", stack.timestamps))
    return [(name, value) for name, value in options if value is False]


def _size_line(size_bytes: int | None) -> str:
    """The size of a flow that always has data."""
    return 'size = "greedy"' if size_bytes is None else f'size = "{size_bytes} B"'


def _bulk_lines(size_bytes: int | None, stack: Stack) -> list[str]:
    """An application that always has data, and the send buffer that it fills. Captured writes need none: they are
    replayed when their octets left, which is when that buffer had taken them."""
    buffer = stack.send_buffer
    if buffer is None:
        return [_size_line(size_bytes)]
    return [
        _size_line(size_bytes),
        f'application = {{ kind = "greedy", write = "{BULK_WRITE_BYTES} B" }}  # assumed: large writes',
        f'send_buffer = "{buffer.first_bytes} B"  # assumed: that of Linux; without SACK it ends what a recovery sends',
        f'send_buffer_max = "{buffer.max_bytes} B"',
    ]


def _application_lines(writes: CapturedWrites | None, first_ns: int, stack: Stack) -> list[str]:
    """The application, whose first write is `first_ns` after the start of the flow."""
    if writes is None:
        return _bulk_lines(None, stack)
    times = ", ".join(f'"{(at + first_ns) / 1e6:.3f} ms"' for at in writes.at_ns)
    sizes = ", ".join(f'"{size} B"' for size in writes.sizes)
    until = ""
    if writes.until_ns is not None:
        ends = ", ".join(f'"{(at + first_ns) / 1e6:.3f} ms"' for at in writes.until_ns)
        until = f", until = [{ends}]"
    return [
        f'application = {{ kind = "writes", at = [{times}], sizes = [{sizes}]{until} }}'
        "  # as the captured application wrote; from the first data packet",
    ]


def _proxy_lines(tables: Sequence[ProxyTable]) -> list[str]:
    """The tables of the proxies, where there are any to compare."""
    lines = []
    for table in tables:
        why = f"  # {table.why}" if table.why else ""
        lines += [f"[[proxy]]{why}", f"name = {_toml(table.name)}", f"node = {_toml(table.node)}"]
        lines += [*(f"{key} = {value}" for key, value in table.keys.items()), ""]
    return lines


def _toml(value: object) -> str:
    """Return a value in TOML."""
    import tomlkit

    return tomlkit.item(value).as_string()


def _interval(value: Value, scale: float, unit: str) -> str:
    if value.low is None or value.high is None:
        return value.how
    return f"95 %: {value.low / scale:.6g} to {value.high / scale:.6g} {unit}; {value.how}"


def _rate_lines(rate: Value | None) -> list[str]:
    if rate is None:
        return ["# rate: not known; without one nothing queues. Draws have up to 4 times its lower bound, if known"]
    return [f'rate = "{format_rate(rate.value)}"  # {_interval(rate, 1e6, "Mbit/s")}']


def _delay_line(delay_ns: int, round_trip: Value, share: float) -> str:
    bounds = ""
    if round_trip.low is not None and round_trip.high is not None:
        low, high = (share * edge / 2e6 for edge in (round_trip.low, round_trip.high))
        bounds = f"95 %: {low:.6g} to {high:.6g} ms; "
    return f'delay = "{format_time(delay_ns)}"  # one way; {bounds}{100 * share:.0f} % of the path by assumption'


def _queue_line(queue: Value | None) -> str:
    if queue is None:
        return f'queue = "{UNKNOWN_QUEUE_PKTS} pkts"  # not known: the capture does not show its limit'
    return f'queue = "{round(queue.value)} pkts"  # {_interval(queue, 1, "pkts")}'


def _window_lines(stack: Stack) -> list[str]:
    if stack.flight_pkts is not None:
        return [
            f'initial_window = "{stack.flight_pkts} pkts"  # in flight where the capture begins, in mid-flow',
            f'initial_ssthresh = "{max(2, stack.flight_pkts)} pkts"',
        ]
    if stack.initial_window_pkts is None:
        return ["# initial_window: not known: the capture begins in mid-flow, or the first write was smaller"]
    return [f'initial_window = "{stack.initial_window_pkts} pkts"']


def _buffer_lines(receive_buffer_bytes: int | None) -> list[str]:
    if receive_buffer_bytes is None:
        return ["# receive_buffer: the window scale is not in the capture, so the window is not known"]
    return [f'receive_buffer = "{receive_buffer_bytes} B"  # the largest window that the receiver advertised']


def _assumed_lines(draft: Draft) -> list[str]:
    """Rate and queue of the hop behind the relay, which the capture does not show."""
    lines = [] if draft.rate is None else [f'rate = "{format_rate(draft.rate.value)}"  # assumed: that of the uplink']
    queue_pkts = UNKNOWN_QUEUE_PKTS if draft.queue is None else round(draft.queue.value)
    return [*lines, f'queue = "{queue_pkts} pkts"  # assumed']


def _change_lines(draft: Draft, *, first: bool) -> list[str]:
    """The changes of one hop: its share of the delay, the rate, and outages where the losses are, on the first.

    With another rate, the second hop serialises in another time, so that the delay differs as well.
    """
    entries = []
    rate_bps, round_trip_ns = _first_bps(draft), draft.round_trip.value
    for change in draft.changes:
        fields = [f'at = "{format_time(change.at_ns)}"']
        if change.rate_bps is not None:
            fields.append(f'rate = "{format_rate(change.rate_bps)}"')
            rate_bps = change.rate_bps
        if change.round_trip_ns is not None:
            round_trip_ns = change.round_trip_ns
        if change.round_trip_ns is not None or (change.rate_bps is not None and draft.relay):
            one_way_ns = max(0.0, round_trip_ns - _second_hop_ns(draft, rate_bps)) / 2
            fields.append(f'delay = "{format_time(_hop_ns(draft, one_way_ns, first=first))}"')
        if first and change.outage is not None:
            fields.append(f"outage = {'true' if change.outage else 'false'}")
        if len(fields) > 1:
            comment = f"  # {change.note}" if change.note else ""
            entries.append(f"  {{ {', '.join(fields)} }},{comment}")
    return ["changes = [  # both directions", *entries, "]"] if entries else []


def _less(value: Value, amount: float) -> Value:
    low, high = (None if edge is None else max(0.0, edge - amount) for edge in (value.low, value.high))
    return Value(max(0.0, value.value - amount), low, high, value.how)


def _first_bps(draft: Draft) -> float | None:
    return None if draft.rate is None else draft.rate.value


def _second_hop_ns(draft: Draft, rate_bps: float | None) -> float:
    """Serialisation, both ways, that the second hop adds and the capture's single hop does not have."""
    if rate_bps is None or not draft.relay:
        return 0.0
    octets = draft.stack.mss_bytes + 2 * draft.stack.header_bytes
    return octets * 8e9 / rate_bps


def _reverse_lines(rate: Value | None, delay_ns: int) -> list[str]:
    fields = f'delay = "{format_time(delay_ns)}", queue = "1000 pkts"'
    if rate is not None:
        fields = f'rate = "{format_rate(rate.value)}", ' + fields
    return [f"reverse = {{ {fields} }}  # acknowledgements: rate assumed equal, losses and queue not known"]
