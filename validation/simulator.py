"""ns-2 as a peer: a script for a chain of links with bit errors, run by Debian's `ns`, and what its sinks received.

Depends on ns-2 (2.35), not on the engine. Pitfalls that the script avoids, all from ns-2's own library:

* The error model's unit `bit` models a code's correction and wants sizes set by hand. Unit `byte` with the rate
  1 - (1 - BER)^8 gives every packet 1 - (1 - BER)^(8 * its own size).
* `lossmodel` drops before the queue; `link-lossmodel` after the link, where a lost packet has used it.
* A drop-tail queue of limit L holds L - 1 packets besides the one in service.
* `packetSize_` is payload: 40 octets of header come on top, and the sink's ACK has 40 (and 8 for each SACK block).
* A connection begins with a SYN and a window of one unless `syn_` and `delay_growth_` are off.
* `RNG seed n` fills the generator with n six times: streams of small seeds resemble each other for long. A new RNG
  left alone takes the next of ns-2's independent streams.
* `tcpTick_` is 0.01 s in this version, 0.1 s in the papers'.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hindflight.toolkit.errors import MachineError

AGENTS = {"reno": ("Reno", ""), "newreno": ("Newreno", ""), "sack": ("Sack1", "/Sack1")}
"""ns-2's sender and sink by our variant …"""

MODULES = {"linux-reno": "reno", "cubic": "cubic", "hybla": "hybla", "westwood-plus": "westwood"}
"""… and the module that its TCP/Linux runs for the others."""

SMSS_BYTES = 1460

RESULTS = "results"
"""What a script writes to a file is not mixed with what ns-2 prints itself."""

TICK_S = 0.1
WINDOW_PKTS = 700_000

SCRIPT = """\
# As many chains of links as repetitions, all in one simulation; prints the octets that each sink had in order.
set ns [new Simulator]
Agent/TCP set tcpTick_ {tick_s}
Agent/TCP set packetSize_ {smss_bytes}
Agent/TCP set window_ {window_pkts}
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
{settings}proc lossy {{from to rng}} {{
    global ns
    set errors [new RandomVariable/Uniform]
    $errors use-rng $rng
    set model [new ErrorModel]
    $model unit byte
    $model set rate_ [expr 1 - pow(1 - {ber}, 8)]
    $model ranvar $errors
    $model drop-target [new Agent/Null]
    $ns link-lossmodel $model $from $to
}}
for {{set n 0}} {{$n < {first_stream}}} {{incr n}} {{ new RNG }}
for {{set n 0}} {{$n < {repetitions}}} {{incr n}} {{
    set rng [new RNG]
    set from [$ns node]
    set sender $from
    foreach delay_s {{{delays_s}}} {{
        set to [$ns node]
        $ns duplex-link $from $to {rate_bps} $delay_s DropTail
        $ns queue-limit $from $to {limit_pkts}
        $ns queue-limit $to $from {limit_pkts}
        lossy $from $to $rng
        lossy $to $from $rng
        set from $to
    }}
    set tcp [new Agent/TCP/{agent}]
    set sink [new Agent/TCPSink{sink}]
    $ns attach-agent $sender $tcp
    $ns attach-agent $from $sink
    $ns connect $tcp $sink
{module}    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at 0 "$ftp start"
    lappend sinks $sink
}}
proc finish {{}} {{
    global sinks
    set results [open {results} w]
    foreach sink $sinks {{ puts $results [$sink set bytes_] }}
    close $results
    exit 0
}}
$ns at {duration_s} finish
$ns run
"""

TCP_LINUX_SETTINGS = """\
Agent/TCP set timestamps_ true
Agent/TCP set ts_resetRTO_ true
"""
"""As the authors of TCP/Linux recommend."""

TCP_LINUX_MODULE = """\
    $sink set ts_echo_rfc1323_ true
    $ns at 0 "$tcp set ssthresh_ {ssthresh_pkts}; $tcp select_ca {module}"
"""
"""ssthresh counts only before `select_ca`, which hands it to the module."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A flow over links of one rate, each with its delay and the same bit errors both ways."""

    variant: str
    delays_s: tuple[float, ...]
    rate_bps: float
    ber: float
    queue_pkts: int
    duration_s: float
    ssthresh_pkts: int | None = None
    """Where slow start ends at first, for a module; None: at the window of the ends."""

    @property
    def header_bytes(self) -> int:
        """Of IP and TCP. TCP/Linux has timestamps, whose option ns-2 takes for ten octets."""
        return HEADER_BYTES + (TIMESTAMP_BYTES if self.variant in MODULES else 0)


def simulator() -> str | None:
    """Return the path of `ns`, or None where ns-2 is not installed."""
    return shutil.which("ns")


def script(chain: Chain, repetitions: int, first_stream: int = 0) -> str:
    """Return the Tcl script that runs `chain` so many times, each with its own stream, from `first_stream` on."""
    module = MODULES.get(chain.variant)
    agent, sink = ("Linux", "/Sack1") if module else AGENTS[chain.variant]
    ssthresh_pkts = chain.ssthresh_pkts or WINDOW_PKTS
    return SCRIPT.format(
        results=RESULTS,
        settings=TCP_LINUX_SETTINGS if module else "",
        module=TCP_LINUX_MODULE.format(ssthresh_pkts=ssthresh_pkts, module=module) if module else "",
        tick_s=TICK_S,
        smss_bytes=SMSS_BYTES,
        window_pkts=WINDOW_PKTS,
        ber=chain.ber,
        first_stream=first_stream,
        repetitions=repetitions,
        delays_s=" ".join(map(str, chain.delays_s)),
        rate_bps=chain.rate_bps,
        limit_pkts=chain.queue_pkts + 1,
        agent=agent,
        sink=sink,
        duration_s=chain.duration_s,
    )


def simulate(
    ns: str, sessions: Sequence[tuple[Chain, int]], repetitions: int, threads: int | None = None
) -> list[list[float]]:
    """Return, by session and repetition, the packets that ns-2's sink had in order when the session ended.

    A session is its chain and the first of its random streams. MachineError where a simulation fails.
    """
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        return list(pool.map(lambda session: _run(ns, session[0], session[1], repetitions), sessions))


def _run(ns: str, chain: Chain, first_stream: int, repetitions: int) -> list[float]:
    lines = run_script(ns, script(chain, repetitions, first_stream))
    if len(lines) != repetitions:
        raise MachineError(f"{ns}: the simulation reported {len(lines)} sinks instead of {repetitions}")
    return [float(line) / (SMSS_BYTES + chain.header_bytes) for line in lines]


def run_script(ns: str, text: str) -> list[str]:
    """Return the lines that the Tcl script `text` writes to the file `RESULTS` under `ns`, or prints if it writes none.
    MachineError where the simulation fails."""
    with TemporaryDirectory(prefix="hindflight-") as folder:
        path = Path(folder, "script.tcl")
        path.write_text(text)
        done = subprocess.run([ns, path.name], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MachineError(f"{ns}: the simulation failed: {done.stderr.strip().splitlines()[-1:]}")
        results = Path(folder, RESULTS)
        return (results.read_text() if results.exists() else done.stdout).splitlines()


HEADER_BYTES = 40
"""Of IP and TCP: the sink counts packets with it."""

TIMESTAMP_BYTES = 10
