"""docs/validation.md: the tables of `python -m validation`, what fails and by how much, and how it was compared.

Depends on the results and their tables. `python -m validation --write docs/validation.md` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from validation.tables import (
    Results,
    Shown,
    closed_form_table,
    failure_lines,
    linux_table,
    ns2_modules_table,
    ns2_table,
    open_loop_table,
    repeated_table,
    summary,
    tcp_linux_table,
)

INTRO = """# Validation

How closely the engine agrees with the Linux stack, with ns-2 and with closed forms. `python -m validation --data DIR
--write docs/validation.md` writes this page; numbers, verdicts and the list of failures come from that run.
"""

LINUX = """
Each run of the real stack was recorded over an emulated link. The engine's link is built from the run's
`scenario.json`: rate, delay, queue, scheduled changes and outages. Random losses are replayed by position, which is
the number of the data packet at the output of the serialiser, retransmissions included, and so is how late the
emulator delivered each packet. Queue drops are those of the engine's queue. The application behaves as in the
recording: it writes 64 KiB whenever the socket is writable, with a limit of 128 KiB of unsent data, and first writes
at the recorded time, counted from the end of the handshake less what the hosts and the emulator delayed that. The
random phases of BBR's gain cycle are taken from TCP_INFO, the writes of an application that paused or wrote at a rate
too, and the largest window that a receive buffer of a given size let the receiver advertise. Lost ACKs are replayed
by position. Where in a tick of the kernel's clock, and in a step of its timer wheel, the recording began is what its
delayed ACKs and timeouts show; where they are too few, the run begins with a tick or a step. One seed; nothing else
is taken from the recording. `python -m validation captures DIR` judges any such folder, and the analysis of its
captures too.

* Goodput: octets that the receiving application had in order at the end of the flow, from its start to its end.
* Retransmissions and timeouts: up to the end of the flow, without the drain after it. Retransmissions are counted in
  the log of the link, timeouts in TCP_INFO (in `scenario.json` for runs without TCP_INFO).
* cwnd error: the window after the n-th data packet was sent, compared with the kernel's, which is that of the first
  row of TCP_INFO at or after this packet by its packet counter; the median over all packets of |engine - kernel| /
  kernel.
* cwnd p25, p50, p75: quantiles of the window over time.
"""

REPEATED = """
If two flows fill one drop-tail queue, a packet that arrives slightly later decides which flow has a loss, and
everything after that, on the real stack as well: by chance alone a single run differs by more than its bounds. The
flows of S12 were therefore recorded repeatedly over a link with the same parameters. Their means are compared with
those of as many runs of the engine, in which the later flow starts at as many instants within one round trip.
`python -m fixtures.record_shared_bottleneck`, as root, records them.
"""

OPEN_LOOP = """
Every flow again, in open loop: the data that the recorded sender sent and when, every ACK with its SACK blocks and
timestamps as seen at its interface, and the times at which its retransmission timer fired are those of the recording.
The engine computes scoreboard, loss detection, recovery and window from them, with the code of a normal run. An error
in the path or in the sender's timing can then neither hide an error in an equation nor look like one. After each ACK
for which TCP_INFO has a row with equal counts of received segments and sent data packets, the window is compared with
the kernel's. The scoreboards at the first difference show whether the ACK was interpreted differently or the window
changed differently.
"""

NS2 = """
ns-2 (2.35, as Debian has it) runs sessions of 31 s over one GEO satellite (125 ms up, 125 ms down) and over two (126,
207.4 and 125.2 ms), 90 repetitions a cell with independent random streams, which no two cells share; the engine runs
the same with ten times as many repetitions.
Packets have 1500 octets. Every hop errs in both directions: ns-2's error model counts octets with the rate
1 - (1 - BER)^8, which makes the loss depend on the size of the packet, and applies behind the link. The windows are not
limited by the ends, `tcpTick_` is 0.1 s, there is no handshake, and a queue takes as many packets as the path holds.
In addition, with losses at given positions the engine sends the same packets at the same times as ns-2's Reno,
Newreno and Sack1 agents, timeouts included, once the phase of ns-2's clock, which is random, is the same.
"""

NS2_MODULES = """
The variants that ns-2 runs as modules of Linux 2.6.22 under its agent TCP/Linux, whose recovery is `ns2_tcp_linux`:
sessions of 31 s over two hops of 125 or of 250 ms, 40 repetitions a cell on each side, with separate random
streams. ns-2 runs with `timestamps_`, `ts_resetRTO_` and `ts_echo_rfc1323_`, as the authors of TCP/Linux recommend, so
that packets have 1510 octets. The first ssthresh is what the path holds on both sides: from an unbounded one, hybla's
first round trip would send 2^16 packets. `cubic` has the module's beta of 819/1024. The rest is as above.
In addition, with losses at given positions over a path without a queue the engine sends the packets of linux-reno and
westwood-plus at the same times as ns-2, and all but a few of those of cubic.
"""

TCP_LINUX = """
ns-2's `Agent/TCP/Linux` runs the congestion control modules of Linux 2.6.22. Both sides have the same list of losses,
given as numbers of data packets, and start at the same ssthresh; their windows are compared once per round trip at
the same data packet. Two windows of packets after each loss are excluded, while either side is in recovery, because
ns-2's rate halving is not part of a module. Where Linux 2.6.22 had other constants, the engine has them as parameters
of the variant. The agents Reno, Newreno and Sack1 are compared with the profile `ns2`. Variants that ns-2 lacks are
compared with an independent recursion, one round trip per step (validation/recursions.py). The pages of the variants
have plots.
"""

CLOSED_FORMS = """
The `rfc` profile over a link with propagation delay only (the sawtooth: a link with a BDP of 100 packets), an ACK for
every packet, start-up excluded. `newreno` has random losses and is compared with Padhye et al. (the full model, with
the flow's mean RTO before backoff). The others lose one packet in 1/p at equal distances, or fill a drop-tail queue.
The mean window is packets sent per round trip.

Two effects that the forms neglect lower the engine's results for losses at equal distances. The table compares the
engine with each:

* sqrt(1.5/p) is the limit for many round trips between two losses. Counted in whole round trips, one of which is
  recovery without window increase, the same sawtooth is 1 to 13 % lower, and reno is within 2 % of that.
* RFC 9438 §5.1 neglects fast convergence (§4.7): near its plateau the window hardly grows, so a single packet can
  decide whether a flow releases bandwidth and reduces W_max by 15 %, from which it recovers over tens of losses. The
  form also equates the window with the curve, while ACKs close only 1 - 1/e of the distance to the target (§4.2) per
  round trip, one of which is recovery without increase. Computed in whole round trips, with and without fast
  convergence, the rules of RFC 9438 are up to 26 % below §5.1 for 9 round trips between two losses, and cubic is
  within 10 % of them everywhere.
"""


def render_page(results: Results, pictures: Mapping[str, str]) -> str:
    """Return the page as Markdown; `pictures` are paths, relative to the page, by what they show."""
    parts = [INTRO, "\n".join(f"* {line}" for line in summary(results)) + "\n"]
    if results.linux:
        parts += [_section(linux_table(results.linux), LINUX)]
    parts += [f"![{shown}]({path})\n" for shown, path in pictures.items()]
    if results.repeated is not None:
        parts += [_section(repeated_table(results.repeated), REPEATED)]
    if results.open_loop:
        parts += [_section(open_loop_table(results.open_loop), OPEN_LOOP)]
    if results.ns2:
        parts += [_section(ns2_table(results.ns2), NS2)]
    if results.ns2_modules:
        parts += [_section(ns2_modules_table(results.ns2_modules), NS2_MODULES)]
    if results.tcp_linux:
        parts += [_section(tcp_linux_table(results.tcp_linux), TCP_LINUX)]
    if results.closed:
        parts += [_section(closed_form_table(results.closed), CLOSED_FORMS)]
    lines = failure_lines(results)
    parts.append("## Failures\n\n" + ("\n".join(f"* {line}" for line in lines) or "Nothing.") + "\n")
    return "\n".join(parts)


def _section(table: Shown, text: str) -> str:
    names = list(table.rows[0])
    lines = [
        f"| {' | '.join(names)} |",
        "|" + "---|" * len(names),
        *(f"| {' | '.join(_emphasised(row[name]) for name in names)} |" for row in table.rows),
    ]
    bounds = f"\n{table.bounds}\n" if table.bounds else ""
    return f"## {table.title}\n{text}{bounds}\n" + "\n".join(lines) + "\n"


def _emphasised(cell: str) -> str:
    return f"{cell.removesuffix('fail')}**fail**" if cell.endswith("fail") else cell
