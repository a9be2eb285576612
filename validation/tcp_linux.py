"""Congestion windows compared with ns-2's `Agent/TCP/Linux`, which runs the modules of Linux 2.6.22.

Depends on ns-2's script for one flow and the engine's configuration for the same. Every flow meets the same list of
losses, given as numbers of data packets, and starts at the same ssthresh without a queue on its path, so that only the
controllers differ; those that use delay are also compared with a queue, which never overflows.

* `$tcp set ssthresh_` only works before `select_ca`, which passes it to the module.
* Windows are compared at equal data packets, retransmissions included: both sides have a loss at the same number.
* During recovery the window follows ns-2's rate halving or RFC 6675, so that round trip and the next are left out.
* A module of that Linux counts ACKs, not segments; bic and cubic divide by an estimate of segments per ACK, which their
  integer arithmetic keeps at 31/16 if every segment is acknowledged. They are compared with delayed ACKs.
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
proc sample {{}} {{
    global ns tcp
    puts "window [$tcp set ndatapack_] [$tcp set cwnd_]"
    $ns at [expr [$ns now] + {rtt_s}] sample
}}
$ns at [expr {rtt_s} / 2] sample
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
    """The path is down in both directions from the first to the second time; only in the engine."""


LOSSES = (900, 6000, 18_000, 30_000, 36_000)
OPEN = Course("no queue, RTT 100 ms", 0.1, 100e9, LOSSES, 256, 20.0)
GEO = Course("no queue, RTT 500 ms", 0.5, 100e9, LOSSES, 256, 30.0)
QUEUE = Course("20 Mbit/s with a queue, RTT from 100 ms", 0.1, 20e6, (12_000, 30_000), 100, 40.0)


@dataclass(frozen=True, slots=True)
class Case:
    """A module of ns-2 and a variant; `params` are those in which Linux 2.6.22 differed."""

    algorithm: str
    variant: str
    path: Course = OPEN
    params: Mapping[str, Any] = field(default_factory=dict)
    delayed_ack: bool = False
    agent: str = "Linux"
    """ns-2's class below `Agent/TCP`; for any other than this the engine runs its profile `ns2`. Empty: no ns-2."""
    reason: str = ""
    """Why the windows differ, by the source code of both …"""
    shown_by: Case | None = None
    """… and the case that proves it: the engine with ns-2's rule, which must be within the bound."""
    by_size: bool = False
    """Windows are compared in order of size, not of time: the sawtooths can be a round trip apart."""
    in_recovery: bool = False
    """Windows are compared during recovery as well: the reference has the same recovery."""

    @property
    def reference(self) -> str:
        """Name of the reference in the plot."""
        return f"ns-2, TCP/{self.agent} {self.algorithm}".rstrip() if self.agent else self.algorithm

    @property
    def subject(self) -> str:
        """The case as text."""
        return f"{self.variant} against {self.reference}, {self.path.name}"


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
        reason="three rules of Linux 2.6.22: slow start ends a segment beyond ssthresh; ACKs counted before are "
        "converted with the current alpha, so that the window jumps when alpha rises; rounds of low delay "
        "need not be consecutive. Here slow start ends at ssthresh, ACKs counted at a lower alpha add one "
        "segment, and rounds must be consecutive, as in the paper",
        shown_by=Case("illinois", OLD_ILLINOIS, QUEUE),
    ),
    Case(
        "illinois",
        "illinois",
        reason="Linux 2.6.22 sets ssthresh = beta cwnd, an error that later Linux corrected to (1 - beta) cwnd as in "
        "the paper: with low delay and beta 1/8, ns-2 loses 7/8 of the window",
        shown_by=Case("illinois", OLD_ILLINOIS),
    ),
    Case(
        "bic",
        "bic",
        delayed_ack=True,
        reason="Linux 2.6.22 grows one ACK late (it compares snd_cwnd_cnt >= cnt before counting) and rounds the "
        "number of ACKs per segment down: a tenth slower at ten ACKs per segment; later Linux and the engine "
        "count exactly",
        shown_by=Case("bic", OLD_BIC, delayed_ack=True),
    ),
    Case(
        "vegas",
        "vegas",
        QUEUE,
        reason="Linux 2.6.22 computes the new window from that of a round trip ago (old_snd_cwnd + 1), so that it "
        "changes in every second round trip; in the paper and later Linux it changes in every one",
        shown_by=Case("vegas", OLD_VEGAS, QUEUE),
    ),
    Case(
        "compound",
        "compound",
        QUEUE,
        reason="ns-2's module uses the minimum RTT of a round and the window at its beginning, the engine the mean "
        "RTT and the current window: in a queue that the flow itself fills, the mean reaches gamma segments "
        "earlier; with the mean instead of the minimum the module agrees with the engine",
        shown_by=Case("compound", OLD_COMPOUND, QUEUE, by_size=True),
    ),
    Case(
        "westwood",
        "westwood-plus",
        reason="ns-2's TCP/Linux never signals the end of recovery (COMPLETE_CWR), at which the window is set to the "
        "estimate: the window is Reno's half or the estimate, whichever is larger, and with its clock of 1 ms "
        "a sample of bursts 100 ms apart takes 200 ms, so that the estimate converges at half the speed",
        shown_by=Case("westwood", OLD_WESTWOOD),
    ),
)
"""Every module that both ns-2 and the engine have; those that depend on delay also with a queue."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WindowComparison:
    """Both windows [packets] at the same data packet, once per round trip; `settled`: neither side is in recovery."""

    case: Case
    packet: Floats
    reference_pkts: Floats
    engine_pkts: Floats
    settled: npt.NDArray[np.bool_]
    shown: WindowComparison | None = None
    """The same with ns-2's rule, if the case names one."""

    @property
    def off_percent(self) -> Floats:
        """Differences outside recovery."""
        ours, theirs = self.engine_pkts[self.settled], self.reference_pkts[self.settled]
        if self.case.by_size:
            ours, theirs = np.sort(ours), np.sort(theirs)
        return np.asarray(100 * np.abs(ours - theirs) / theirs)

    @property
    def check(self) -> Check:
        """The 95 % quantile of the differences over round trips."""
        value = float(np.quantile(self.off_percent, SHARE_OF_ROUNDS))
        return Check(self.case.subject, "difference of cwnd", value, 0.0, BOUND_PERCENT, "%", "")

    @property
    def explained(self) -> bool:
        """Whether a reason is given and the engine with ns-2's rule is within the bound."""
        return bool(self.case.reason) and self.shown is not None and self.shown.check.verdict == "pass"


def compare_with_tcp_linux(
    ns: str, cases: Sequence[Case] = CASES, *, threads: int | None = None
) -> list[WindowComparison]:
    """Return a comparison per case; `ns` is the simulator's path. MachineError where a simulation fails."""
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        theirs = list(pool.map(lambda case: _simulate(ns, case), cases))
    return [compare_windows(case, windows) for case, windows in zip(cases, theirs, strict=True)]


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


def compare_windows(case: Case, theirs: Sequence[tuple[int, float]]) -> WindowComparison:
    """Run the engine and compare windows at the packets for which the reference has one."""
    import pyarrow.compute as pc

    tables = run_configurations([Configuration(_configuration(case), 1, recorded=True)])
    segments = tables["segments"]
    left_ns = np.sort(segments.filter(pc.greater(segments["payload_bytes"], 0))["t_ns"].to_numpy())
    states = tables["instruments"]
    states = states.filter(pc.equal(states["source"].cast("string"), "replay"))
    cwnd = states["cwnd_bytes"].to_numpy() / SMSS_BYTES
    recovers = np.isin(states["phase"].cast("string").to_numpy(), ["recovery", "loss"])
    kept = [(packets, window) for packets, window in theirs if 0 < packets <= len(left_ns)]
    packet = np.array([packets for packets, _ in kept], dtype=np.float64)
    ns2 = np.array([window for _, window in kept], dtype=np.float64)
    # The state at the transmission of that packet.
    rows = np.searchsorted(states["t_ns"].to_numpy(), left_ns[packet.astype(int) - 1], side="right") - 1
    settled = (~recovers[rows] & ~_near_a_loss(packet, ns2, case.path.losses)) | case.in_recovery
    shown = compare_windows(case.shown_by, theirs) if case.shown_by else None
    return WindowComparison(case, packet, ns2, cwnd[rows], settled, shown)


def _near_a_loss(packet: Floats, window: Floats, losses: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Whether a loss is less than two windows back: one until its detection, one of recovery."""
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
