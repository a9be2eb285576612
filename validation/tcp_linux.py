"""Congestion windows compared with ns-2's `Agent/TCP/Linux`, which runs the modules of Linux 2.6.22.

Depends on ns-2's script for one flow and the engine's configuration for the same. Every flow meets the same list of
losses, given as numbers of data packets, and starts at the same ssthresh without a queue on its path, so that only the
controllers differ; those that look at delay meet a queue as well, which never overflows.

* `$tcp set ssthresh_` counts only before `select_ca`, which hands it to the module.
* The window's clock is the data packet, retransmissions included: both sides meet a loss at the same number.
* While one side is in recovery, its window follows ns-2's rate halving or RFC 6675: that round trip is left out, and
the next. * A module of that Linux counts ACKs, not segments; bic and cubic divide by an estimate of segments per ACK
which their
  integers keep at 31/16 where every segment is acknowledged. They are compared with delayed ACKs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hindflight.replay.experiment.run import Configuration, run_configurations
from hindflight.toolkit.errors import MachineError
from validation.judge import Check
from validation.old_rules import OLD_BIC, OLD_COMPOUND, OLD_ILLINOIS, OLD_VEGAS, OLD_WESTWOOD
from validation.simulator import SMSS_BYTES, WINDOW_PKTS, run_script

BOUND_PERCENT = 5.0
"""Bound on the difference of the windows …"""
SHARE_OF_ROUNDS = 0.95
"""… in this share of the round trips."""

SCRIPT = """\
# One flow of TCP/Linux over a path of one link; prints data packets sent and cwnd once per round trip.
set ns [new Simulator]
Agent/TCP set packetSize_ {smss_bytes}
Agent/TCP set window_ {window_pkts}
Agent/TCP set windowInit_ {initial_pkts}
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set timestamps_ true
Agent/TCP set ts_resetRTO_ true
set a [$ns node]
set b [$ns node]
$ns duplex-link $a $b {rate_bps} {delay_s} DropTail
$ns queue-limit $a $b {window_pkts}
$ns queue-limit $b $a {window_pkts}
set losses [new ErrorModel/List]
$losses unit pkt
$losses droplist {{{losses}}}
$losses drop-target [new Agent/Null]
$ns link-lossmodel $losses $a $b
set tcp [new Agent/TCP/{agent}]
set sink [new Agent/TCPSink{sink}]
$sink set ts_echo_rfc1323_ true
$ns attach-agent $a $tcp
$ns attach-agent $b $sink
$ns connect $tcp $sink
$ns at 0 "$tcp set ssthresh_ {ssthresh_pkts}{select}"
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0 "$ftp start"
proc tell {{}} {{
    global ns tcp
    puts "window [$tcp set ndatapack_] [$tcp set cwnd_]"
    $ns at [expr [$ns now] + {rtt_s}] tell
}}
$ns at [expr {rtt_s} / 2] tell
$ns at {duration_s} "exit 0"
$ns run
"""

INITIAL_PKTS = 2
NEVER_PKTS = 1_000_000_000
"""A list of losses is repeated after so many packets."""


@dataclass(frozen=True, slots=True)
class Course:
    """One link, with the numbers of the data packets that it loses, the first of all being 0."""

    name: str
    rtt_s: float
    rate_bps: float
    losses: tuple[int, ...]
    ssthresh_pkts: int
    duration_s: float
    outage_s: tuple[float, float] | None = None
    """The path is down both ways from the first to the second time; ns-2 is told of none."""


LOSSES = (900, 6000, 18_000, 30_000, 36_000)
OPEN = Course("no queue, RTT 100 ms", 0.1, 100e9, LOSSES, 256, 20.0)
GEO = Course("no queue, RTT 500 ms", 0.5, 100e9, LOSSES, 256, 30.0)
QUEUE = Course("20 Mbit/s with a queue, RTT from 100 ms", 0.1, 20e6, (12_000, 30_000), 100, 40.0)


@dataclass(frozen=True, slots=True)
class Case:
    """A module of ns-2 beside a variant; `params` are those that Linux 2.6.22 had otherwise."""

    algorithm: str
    variant: str
    path: Course = OPEN
    params: Mapping[str, Any] = field(default_factory=dict)
    delayed_ack: bool = False
    agent: str = "Linux"
    """ns-2's class below `Agent/TCP`; the engine runs its profile `ns2` beside any but this. None: no ns-2."""
    reason: str = ""
    """Why the windows differ where they do, by both sources …"""
    shown_by: Case | None = None
    """… and what shows that: the same with ns-2's rule in the engine, which must come within the bound."""
    by_size: bool = False
    """Windows are compared in the order of their size, not of time: a sawtooth may stand a round trip apart."""
    through_repair: bool = False
    """Windows are compared while a loss is repaired, too: the other side has the same recovery."""

    @property
    def reference(self) -> str:
        """What the picture calls the other side."""
        return f"ns-2, TCP/{self.agent} {self.algorithm}".rstrip() if self.agent else self.algorithm

    @property
    def subject(self) -> str:
        """In words."""
        return f"{self.variant} beside {self.reference}, {self.path.name}"


NO_SACK = ("Reno", "Newreno")

CASES = (
    Case("", "reno", agent="Reno"),
    Case("", "newreno", agent="Newreno"),
    Case("", "sack", agent="Sack1"),
    Case("", "fack", agent="Fack"),
    Case("reno", "linux-reno"),
    Case("cubic", "cubic", params={"beta": 0.8}, delayed_ack=True),
    Case("highspeed", "highspeed", params={"table": True}),
    Case("htcp", "htcp"),
    Case("hybla", "hybla", GEO),
    Case("scalable", "scalable", params={"a": 1 / 51}),
    Case("veno", "veno"),
    Case("veno", "veno", QUEUE),
    Case("yeah", "yeah"),
    Case("yeah", "yeah", QUEUE),
    Case("compound", "compound"),
    Case("westwood", "westwood-plus", QUEUE),
    Case(
        "illinois",
        "illinois",
        QUEUE,
        reason="three rules of Linux: slow start ends a segment beyond ssthresh; ACKs counted before are paid by the "
        "alpha of now, so that the window leaps where alpha does; rounds of low delay count in all. Here slow "
        "start ends at ssthresh, a count made at a lower alpha buys one segment, and rounds count in a row, as in the "
        "paper",
        shown_by=Case("illinois", OLD_ILLINOIS, QUEUE),
    ),
    Case(
        "illinois",
        "illinois",
        reason="Linux 2.6.22 takes ssthresh = beta cwnd, a slip that later Linux has mended to (1 - beta) cwnd, the "
        "paper's: where the delay is low and beta 1/8, ns-2 loses 7/8 of the window",
        shown_by=Case("illinois", OLD_ILLINOIS),
    ),
    Case(
        "bic",
        "bic",
        delayed_ack=True,
        reason="Linux 2.6.22 grows with the ACK after the one that pays for a segment (snd_cwnd_cnt >= cnt is asked "
        "before counting) and cuts the price to whole ACKs: a tenth slower where ten ACKs buy one; later Linux and the "
        "engine count them exactly",
        shown_by=Case("bic", OLD_BIC, delayed_ack=True),
    ),
    Case(
        "vegas",
        "vegas",
        QUEUE,
        reason="Linux 2.6.22 steps from the window of a round trip ago (old_snd_cwnd + 1), so that it moves in every "
        "second round trip; the paper and later Linux add a segment in every one",
        shown_by=Case("vegas", OLD_VEGAS, QUEUE),
    ),
    Case(
        "compound",
        "compound",
        QUEUE,
        reason="ns-2's module takes the least RTT of a round and the window that was outstanding when it began, the "
        "engine the mean and the window of now: over a queue that the flow itself moves, the mean sees gamma segments "
        "earlier; with the mean in the place of the least the module stands where the engine does",
        shown_by=Case("compound", OLD_COMPOUND, QUEUE, by_size=True),
    ),
    Case(
        "westwood",
        "westwood-plus",
        reason="ns-2's TCP/Linux never signals the end of recovery (COMPLETE_CWR), which sets ssthresh to the "
        "estimate: the window is Reno's half or the estimate, whichever is more, and its clock of 1 ms lets a sample "
        "of bursts 100 ms apart take 200 ms, so that the estimate follows at half the pace",
        shown_by=Case("westwood", OLD_WESTWOOD),
    ),
)
"""Every module that ns-2 has and the engine too; those that need a queue to tell, with one."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Likeness:
    """Both windows [packets] at the same data packet, once per round trip, and where neither side repairs a loss."""

    case: Case
    packet: Floats
    reference_pkts: Floats
    engine_pkts: Floats
    settled: npt.NDArray[np.bool_]
    shown: Likeness | None = None
    """The same with ns-2's rule, where the case says that one makes the difference."""

    @property
    def off_percent(self) -> Floats:
        """How far apart, where neither side repairs."""
        ours, theirs = self.engine_pkts[self.settled], self.reference_pkts[self.settled]
        if self.case.by_size:
            ours, theirs = np.sort(ours), np.sort(theirs)
        return np.asarray(100 * np.abs(ours - theirs) / theirs)

    @property
    def check(self) -> Check:
        """The difference that all but one round trip in twenty keep to."""
        value = float(np.quantile(self.off_percent, SHARE_OF_ROUNDS))
        return Check(self.case.subject, "difference of cwnd", value, 0.0, BOUND_PERCENT, "%", "")

    @property
    def explained(self) -> bool:
        """Whether the reason is named, and the engine with ns-2's rule within the bound."""
        return bool(self.case.reason) and self.shown is not None and self.shown.check.verdict == "pass"


def compare_with_tcp_linux(ns: str, cases: Sequence[Case] = CASES, *, threads: int | None = None) -> list[Likeness]:
    """Return a likeness per case; `ns` is the simulator's path. MachineError where a simulation fails."""
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        theirs = list(pool.map(lambda case: _simulate(ns, case), cases))
    return [beside(case, windows) for case, windows in zip(cases, theirs, strict=True)]


def script(case: Case) -> str:
    """Return the Tcl script of `case`."""
    path = case.path
    return SCRIPT.format(
        smss_bytes=SMSS_BYTES,
        window_pkts=WINDOW_PKTS,
        initial_pkts=INITIAL_PKTS,
        rate_bps=path.rate_bps,
        delay_s=path.rtt_s / 2,
        losses=" ".join(map(str, path.losses)),
        agent=case.agent,
        sink=("" if case.agent in NO_SACK else "/Sack1") + ("/DelAck" if case.delayed_ack else ""),
        ssthresh_pkts=path.ssthresh_pkts,
        select=f"; $tcp select_ca {case.algorithm}" if case.agent == "Linux" else "",
        rtt_s=path.rtt_s,
        duration_s=path.duration_s,
    )


def _simulate(ns: str, case: Case) -> list[tuple[int, float]]:
    """Return data packets sent and cwnd, once per round trip."""
    words = [line.split() for line in run_script(ns, script(case)) if line.startswith("window ")]
    if not words:
        raise MachineError(f"{ns}: TCP/Linux {case.algorithm} printed no windows")
    return [(int(sent), float(cwnd)) for _, sent, cwnd in words]


def beside(case: Case, theirs: Sequence[tuple[int, float]]) -> Likeness:
    """Run the engine and read its window where the reference has told of packets sent and its own."""
    import pyarrow.compute as pc

    tables = run_configurations([Configuration(_configuration(case), 1, recorded=True)])
    segments = tables["segments"]
    left_ns = np.sort(segments.filter(pc.greater(segments["payload_bytes"], 0))["t_ns"].to_numpy())
    told = tables["instruments"]
    told = told.filter(pc.equal(told["source"].cast("string"), "replay"))
    cwnd = told["cwnd_bytes"].to_numpy() / SMSS_BYTES
    repairs = np.isin(told["phase"].cast("string").to_numpy(), ["recovery", "loss"])
    kept = [(packets, window) for packets, window in theirs if 0 < packets <= len(left_ns)]
    packet = np.array([packets for packets, _ in kept], dtype=np.float64)
    ns2 = np.array([window for _, window in kept], dtype=np.float64)
    # What governed when that packet left.
    rows = np.searchsorted(told["t_ns"].to_numpy(), left_ns[packet.astype(int) - 1], side="right") - 1
    settled = (~repairs[rows] & ~_near_a_loss(packet, ns2, case.path.losses)) | case.through_repair
    shown = beside(case.shown_by, theirs) if case.shown_by else None
    return Likeness(case, packet, ns2, cwnd[rows], settled, shown)


def _near_a_loss(packet: Floats, window: Floats, losses: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Whether a loss lies less than two windows back: one until it is noticed, one of repair."""
    near = np.zeros(len(packet), dtype=np.bool_)
    for loss in losses:
        before = np.flatnonzero(packet <= loss)
        size = window[before[-1]] if len(before) else INITIAL_PKTS
        near |= (packet > loss) & (packet <= loss + 2 * size)
    return near


def _configuration(case: Case) -> dict[str, Any]:
    path = case.path
    delay_ns = round(path.rtt_s * 1e9 / 2)
    direction = {
        "rate_bps": path.rate_bps,
        "delay_ns": delay_ns,
        "queue": {"kind": "drop_tail", "limit_pkts": WINDOW_PKTS},
        "schedule": [
            {"at_ns": round(at_s * 1e9), "outage": down}
            for at_s, down in zip(path.outage_s or (), (True, False), strict=False)
        ],
    }
    losses = {"kind": "trace", "mode": "replayed", "positions": list(path.losses), "known_pkts": NEVER_PKTS}
    stack = {
        "smss_bytes": SMSS_BYTES,
        "timestamps": False,
        "handshake": False,
        "initial_window_pkts": INITIAL_PKTS,
        "initial_ssthresh_pkts": path.ssthresh_pkts,
        "delayed_ack": case.delayed_ack,
        "delayed_ack_timeout_ns": 100_000_000,
        "receive_buffer_bytes": 1 << 30,
        "limited_transmit": False,
    }
    profile = "rfc" if case.agent in ("", "Linux") else "ns2"
    flow = {"name": "flow", "variant": case.variant, "profile": profile, "stack": stack, "params": dict(case.params)}
    return {
        "duration_ns": round(path.duration_s * 1e9),
        "path": {
            "nodes": ["sender", "receiver"],
            "links": [{"name": "link", "forward": {**direction, "loss": losses}, "reverse": direction}],
        },
        "flows": [flow],
    }
