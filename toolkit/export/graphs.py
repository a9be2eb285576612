"""tcptrace's six graphs of one connection, from its segments.

The definitions are those of tcptrace 6.6.7 (`tcptrace -G`), which docs/export.md lists with the differences: here
retransmissions, round-trip times and windows are those of the tables. Read xplot.py first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hindflight.toolkit.export.xplot import Line, Plot, microseconds

GRAPHS = ("tsg", "tput", "rtt", "owin", "segsize", "timeline")
"""The graphs of a connection; the last has both directions in one."""

FIN, SYN, RST, PSH, ACK, ECE, CWR = 1, 2, 4, 8, 16, 64, 128
_CE = 3
_INTERVAL_PKTS = 10
"""Packets per point of the throughput (tcptrace -A)."""
_INSTANT_US = 1000
"""Time that tcptrace takes for packets of one microsecond."""
_DUP_THRESH = 3
_LEFT, _RIGHT = 40, 60
"""Places of the two hosts in a time line."""

Row = Mapping[str, Any]


@dataclass(slots=True)
class Segment:
    """A row of `segments` as the graphs need it: times in microseconds, numbers absolute."""

    t_us: int
    flags: int
    start: int
    end: int
    ack: int
    window: int | None
    window_end: int | None
    retransmitted: bool
    reordered: bool
    probe: bool
    row: Row

    @property
    def data_bytes(self) -> int:
        """Payload."""
        return self.end - self.start


@dataclass(slots=True)
class Side:
    """One direction of the connection: its state so far and its graphs."""

    name: str
    first: int
    plots: dict[str, Plot]
    lines: dict[str, Line]
    max_end: int | None = None
    ack: int | None = None
    ack_us: int = 0
    dup_acks: int = 0
    window: int | None = None
    window_end: int | None = None
    rtt_us: int = 0
    data_bytes: int = 0
    data_pkts: int = 0
    interval_start_us: int | None = None
    interval_pkts: int = 0
    interval_bytes: int = 0
    data_us: int = 0
    owin_sum: int = 0
    owin_pkts: int = 0
    owin_weighted: int = 0
    owin_last: tuple[int, int] | None = None


@dataclass(slots=True)
class Connection:
    """Draws the graphs of one connection, a segment at a time and in the order of the capture."""

    a: str
    b: str
    first: tuple[int, int]
    sides: tuple[Side, Side] = field(init=False)
    timeline: Plot = field(init=False)
    start_us: int | None = None

    def __post_init__(self) -> None:
        """Make the graphs; `first` has the first sequence number of each direction."""
        self.sides = (_side("a2b", self.a, self.b, self.first[0]), _side("b2a", self.b, self.a, self.first[1]))
        title = f"{self.a}_==>_{self.b} (time line graph)"
        self.timeline = Plot("unsigned dtime", title, "segments", "relative time")
        self.timeline.commands += ["invisible 0 -0.000000", "invisible 100 -0.000000"]

    def plots(self) -> Iterable[tuple[str, str, Plot]]:
        """Yield each graph with its direction ("" for the time line) and its name."""
        for side in self.sides:
            for name, plot in side.plots.items():
                yield side.name, name, plot
        yield "", "timeline", self.timeline

    def add(self, row: Row) -> None:
        """Draw one segment. The reset of a connection has no window and counts in no line, as in tcptrace."""
        forward = row["direction"] == "a2b"
        this, other = self.sides if forward else self.sides[::-1]
        segment = _segment(row, this, other)
        if self.start_us is None:
            self.start_us = segment.t_us
        _throughput(this, segment, self.start_us)
        _segment_size(this, segment)
        _rtt(other, segment)
        _draw_segment(this, segment, self.start_us)
        self._time_line(this, segment, forward)
        if segment.end > (this.max_end if this.max_end is not None else segment.end - 1):
            this.max_end = segment.end
        if segment.flags & RST:
            at = segment.ack if segment.flags & ACK else this.ack
            if at is not None:
                other.plots["tsg"].text("a", segment.t_us, at, "RST_IN", "magenta")
            this.plots["tsg"].text("a", segment.t_us, segment.start, "RST_OUT", "magenta")
            return
        this.window = segment.window
        if segment.flags & ACK:
            _draw_ack(this, other, segment)
        if not (segment.flags & SYN or segment.reordered or segment.retransmitted):
            _outstanding(this, other, segment, self.start_us)

    def _time_line(self, this: Side, segment: Segment, forward: bool) -> None:
        """The segment between the hosts: captured at a, and a third of the round trip away at b, as in tcptrace."""
        plot, here = self.timeline, segment.t_us - (self.start_us or 0)
        there = here + this.rtt_us // 3 if forward else here - this.rtt_us // 3
        for place in (_LEFT, _RIGHT):
            plot.commands.append(f"line {place} -0.000000 {place} {_below(there)}")
        plot.color(_time_line_color(segment, forward))
        if forward:
            plot.commands.append(f"line {_LEFT} {_below(here)} {_RIGHT} {_below(there)}")
            plot.commands.append(f"rarrow {_RIGHT} {_below(there)}")
        else:
            plot.commands.append(f"line {_RIGHT} {_below(there)} {_LEFT} {_below(here)}")
            plot.commands.append(f"larrow {_LEFT} {_below(here)}")
        plot.color("white")
        text = f"ltext {_LEFT} {_below(here)}" if forward else f"rtext {_RIGHT} {_below(there)}"
        plot.commands.append(f"{text}\n{_words(segment)}")


def _side(name: str, sender: str, receiver: str, first: int) -> Side:
    title = f"{sender}_==>_{receiver}"
    plots = {
        "tsg": Plot("timeval double", f"{title} (time sequence graph)", "time", "sequence number"),
        "tput": Plot("timeval signed", f"{title} (throughput)", "time", "thruput (bytes/sec)"),
        "rtt": Plot("timeval signed", f"{title} (rtt samples)", "time", "rtt (ms)"),
        "owin": Plot("timeval signed", f"{title} (outstanding data)", "time", "Outstanding Data (bytes)"),
        "segsize": Plot("timeval signed", f"{title} (segment size graph)", "time", "segment size (bytes)"),
    }
    lines = {
        "tput": Line(plots["tput"], "red", "inst. tput"),
        "tput_avg": Line(plots["tput"], "blue", "avg. tput"),
        "rtt": Line(plots["rtt"], "red", "rtt"),
        "owin": Line(plots["owin"], "red", "owin"),
        "rwin": Line(plots["owin"], "yellow", "rwin"),
        "owin_avg": Line(plots["owin"], "blue", "avg owin"),
        "owin_wavg": Line(plots["owin"], "green", "wavg owin"),
        "segsize": Line(plots["segsize"], "red", "segsize"),
        "segsize_avg": Line(plots["segsize"], "blue", "avg segsize"),
    }
    return Side(name, first, plots, lines)


def _segment(row: Row, this: Side, other: Side) -> Segment:
    flags, payload = row["flags"], row["payload_bytes"]
    start = this.first + row["seq"]
    ack = other.first + row["ack"] if row["ack"] is not None else 0
    window = row["wnd_bytes"]
    takes_space = bool(payload or flags & (SYN | FIN))
    probe = takes_space and other.window == 0
    retransmitted = row["retransmission"] and not probe
    reordered = takes_space and not probe and not retransmitted and this.max_end is not None and start < this.max_end
    return Segment(
        t_us=microseconds(row["t_ns"]),
        flags=flags,
        start=start,
        end=start + payload,
        ack=ack,
        window=window,
        window_end=None if window is None or not flags & ACK else ack + window,
        retransmitted=retransmitted,
        reordered=reordered,
        probe=probe,
        row=row,
    )


def _throughput(this: Side, segment: Segment, start_us: int) -> None:
    """A yellow dot per data packet; the red line is the mean over ten packets, the blue one over the connection."""
    if this.interval_start_us is None:
        this.interval_start_us = this.data_us = segment.t_us
        this.interval_pkts, this.interval_bytes = 1, segment.data_bytes
        this.data_bytes += segment.data_bytes
        return
    if not segment.data_bytes:
        return
    this.data_bytes += segment.data_bytes
    if this.interval_pkts + 1 >= _INTERVAL_PKTS:
        interval_us = segment.t_us - this.interval_start_us or _INSTANT_US
        this.lines["tput"].extend(segment.t_us, this.interval_bytes * 1_000_000 // interval_us)
        whole_us = segment.t_us - start_us or _INSTANT_US
        this.lines["tput_avg"].extend(segment.t_us, this.data_bytes * 1_000_000 // whole_us)
        this.interval_start_us, this.interval_pkts, this.interval_bytes = segment.t_us, 0, 0
    gap_us = segment.t_us - this.data_us or _INSTANT_US
    this.plots["tput"].mark("dot", segment.t_us, segment.data_bytes * 1_000_000 // gap_us, "yellow")
    this.data_us = segment.t_us
    this.interval_pkts += 1
    this.interval_bytes += segment.data_bytes


def _segment_size(this: Side, segment: Segment) -> None:
    if segment.data_bytes:
        this.data_pkts += 1
        this.lines["segsize"].extend(segment.t_us, segment.data_bytes)
        this.lines["segsize_avg"].extend(segment.t_us, this.data_bytes // this.data_pkts)


def _rtt(sender: Side, segment: Segment) -> None:
    """A point for each round-trip time that an ACK measures for the other side's data."""
    rtt_ns = segment.row["rtt_ns"]
    if rtt_ns is not None:
        sender.rtt_us = segment.t_us - microseconds(segment.row["t_ns"] - rtt_ns)
        sender.lines["rtt"].extend(segment.t_us, sender.rtt_us // 1000)


def _draw_segment(this: Side, segment: Segment, start_us: int) -> None:
    """The segment in the time-sequence graph of its sender."""
    plot, t_us, flags = this.plots["tsg"], segment.t_us, segment.flags
    if segment.reordered:
        plot.color("pink")
        plot.text("a", t_us, segment.end, "O")
    if segment.retransmitted and not flags & (SYN | FIN):
        plot.color("red")
        plot.text("a", t_us, segment.end, "R")
    if segment.probe:
        plot.color("pink")
        plot.text("b", t_us, segment.end, "P")
    plot.color("white")
    if flags & SYN:
        if flags & ACK:
            plot.mark("dot", start_us, segment.start, "green")
        plot.color("red" if segment.retransmitted else "orange")
        plot.mark("diamond", t_us, segment.start)
        plot.text("a", t_us, segment.start + 1, "R SYN" if segment.retransmitted else "SYN")
        plot.mark("uarrow", t_us, segment.start + 1)
        plot.line(t_us, segment.start, t_us, segment.start + 1)
    elif flags & FIN:
        if segment.data_bytes:
            plot.mark("darrow", t_us, segment.start)
            plot.line(t_us, segment.start, t_us, segment.end)
        plot.color("red" if segment.retransmitted else "orange")
        if not segment.data_bytes:
            plot.mark("darrow", t_us, segment.end)
        plot.line(t_us, segment.end, t_us, segment.end + 1)
        plot.mark("box", t_us, segment.end + 1)
        plot.text("a", t_us, segment.end + 1, "R FIN" if segment.retransmitted else "FIN")
    elif segment.data_bytes:
        _draw_data(plot, segment)
    else:
        plot.mark("darrow", t_us, segment.start)
        plot.mark("uarrow", t_us, segment.start)
    _draw_ecn(plot, segment)


def _draw_data(plot: Plot, segment: Segment) -> None:
    t_us = segment.t_us
    if segment.retransmitted:
        plot.color("red")
    plot.mark("darrow", t_us, segment.start)
    if segment.flags & PSH:
        plot.mark("diamond", t_us, segment.end, "white")
        plot.mark("dot", t_us, segment.end, "white")
    else:
        plot.mark("uarrow", t_us, segment.end)
    plot.line(t_us, segment.start, t_us, segment.end)


def _draw_ecn(plot: Plot, segment: Segment) -> None:
    marked = segment.row["dscp_ecn"] & _CE == _CE
    reduced = bool(segment.flags & CWR)
    if marked or reduced:
        plot.color("yellow")
        plot.mark("diamond", segment.t_us, segment.start)
        plot.text("a", segment.t_us, segment.start, " ".join(["CWR"] * reduced + ["CE"] * marked))


def _draw_ack(this: Side, other: Side, segment: Segment) -> None:
    """The acknowledgement, the window and SACK in the time-sequence graph of the other side."""
    plot, t_us, ack, window_end = other.plots["tsg"], segment.t_us, segment.ack, segment.window_end
    this.dup_acks = this.dup_acks + 1 if ack == this.ack and not segment.data_bytes else 0
    if segment.window == 0:
        plot.text("a", t_us, ack, "Z", "magenta")
    if this.ack is not None:
        plot.color("green")
        plot.line(this.ack_us, this.ack, t_us, this.ack)
        if this.ack != ack:
            plot.line(t_us, this.ack, t_us, ack)
        else:
            plot.mark("dtick", t_us, ack)
            if this.dup_acks == _DUP_THRESH:
                plot.text("a", t_us, ack, str(_DUP_THRESH))
        if segment.flags & ECE and not segment.flags & SYN:
            plot.color("yellow")
            plot.mark("diamond", t_us, ack)
        if this.window_end is not None and window_end is not None:
            plot.color("yellow")
            plot.line(this.ack_us, this.window_end, t_us, this.window_end)
            if this.window_end != window_end:
                plot.line(t_us, this.window_end, t_us, window_end)
            else:
                plot.mark("utick", t_us, window_end)
    _draw_sack(plot, other, segment)
    this.ack, this.ack_us, this.window_end = ack, t_us, window_end


def _draw_sack(plot: Plot, other: Side, segment: Segment) -> None:
    edges = [other.first + edge for edge in segment.row["sack"]]
    if not edges:
        return
    plot.color("purple")
    blocks = list(zip(edges[::2], edges[1::2], strict=True))
    for number, (left, right) in enumerate(blocks, 1):
        plot.line(segment.t_us, left, segment.t_us, right)
        plot.mark("htick", segment.t_us, left)
        plot.mark("htick", segment.t_us, right)
        if len(blocks) > 1:
            plot.text("r", segment.t_us, right, str(number))
    plot.text("a", segment.t_us, max(right for _, right in blocks), "S")


def _outstanding(this: Side, other: Side, segment: Segment, start_us: int) -> None:
    """Octets not yet acknowledged, the window, and the means over segments and over time."""
    outstanding = segment.data_bytes if other.ack is None else segment.end - other.ack + 1
    this.owin_sum += outstanding
    this.owin_pkts += 1
    if this.owin_last is not None:
        last_us, last = this.owin_last
        this.owin_weighted += int(last * ((segment.t_us - last_us) / 1e6))
        elapsed_s = (segment.t_us - start_us) / 1e6
        this.lines["owin_wavg"].extend(last_us, int(this.owin_weighted / elapsed_s) if elapsed_s else 0)
    this.owin_last = (segment.t_us, outstanding)
    this.lines["owin"].extend(segment.t_us, outstanding)
    if other.window is not None:
        this.lines["rwin"].extend(segment.t_us, other.window)
    this.lines["owin_avg"].extend(segment.t_us, this.owin_sum // this.owin_pkts)


def _below(t_us: int) -> str:
    """A time as the time line has it: downwards."""
    whole, rest = divmod(t_us, 1_000_000)
    return f"-{whole}.{rest:06d}"


def _time_line_color(segment: Segment, forward: bool) -> str:
    if segment.retransmitted:
        return "red"
    if segment.flags & (SYN | FIN | RST):
        return "orange"
    return "green" if forward else "yellow"


def _words(segment: Segment) -> str:
    """The segment as tcpdump writes it, with relative numbers."""
    row = segment.row
    names = ((SYN, "SYN"), (FIN, "FIN"), (RST, "RST"), (PSH, "PSH"))
    flags = "".join(f"{name} " for bit, name in names if segment.flags & bit)
    octets = f"{row['seq']}:{row['seq'] + row['payload_bytes']}({row['payload_bytes']})"
    ack = f" ack {row['ack']}" if row["ack"] is not None else ""
    return f"{flags}{octets}{ack} win {segment.window if segment.window is not None else '?'}"
