"""docs/validation.md: the tables of `python -m validation`, what fails and by how much, and how it was compared.

Depends on the results and their tables. `python -m validation --write docs/validation.md` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from validation.tables import (
    Results,
    Shown,
    alone_table,
    closed_form_table,
    linux_table,
    missing,
    ns2_modules_table,
    ns2_table,
    repeated_table,
    summary,
    tcp_linux_table,
)

INTRO = """# Validation

How far the engine agrees with the Linux stack, with ns-2 and with closed forms. `python -m validation --data DIR
--write docs/validation.md` writes this page; numbers, verdicts and the list of misses come from that run.
"""

LINUX = """
Each run of the real stack was recorded over an emulated link. Its link is rebuilt from its `scenario.json`: rate,
delay, queue, schedule of changes and outages. Losses of the loss stage are replayed by position, which is the number of
the data packet, retransmissions included, to leave the serialiser. What the queue drops comes from the engine's own
queue. The sending application is the recording's: it writes 64 KiB whenever poll says that it may, to a socket that
finds 128 KiB of unsent octets enough, and it writes first when the recorded one did. The phases of its gain cycle that
BBR draws by chance are read from TCP_INFO. The run begins where in a tick of the hosts' clock, and in a step of their
timer wheels, the recorded one did: CUBIC reads its curve by ticks of 4 ms, and timers fire at them. That is one number
for all runs: where in a tick was read off their delayed ACKs and time stamps, which of the eight ticks of a step off
the timeouts of S7 and S8; a run recorded at another time begins with a tick. One seed; nothing else is taken from the
recording.

* Goodput: octets that the receiving application had in order by the flow's end, over its start to its end.
* Retransmissions and timeouts: up to the flow's end, not in the drain behind it. Retransmissions are counted in the
  link's log, timeouts in TCP_INFO (in `scenario.json` where a run comes without TCP_INFO).
* cwnd error: the window after the n-th data packet left against the kernel's, which is that of the first row of
  TCP_INFO at or after it by its own count of packets; the median over all packets of |engine - kernel| / kernel.
* cwnd p25, p50, p75: quantiles of the window over time.

A run that misses is repeated with what no model of the link has and the record tells: by how much the emulator
delivered each packet late. What is said of the first packet that differs holds for that packet and no other
(validation/explained.py).
"""

REPEATED = """
Where two flows fill one drop-tail queue, a packet that comes a moment later decides who loses and all that follows, on
the real stack as well: chance alone moves a single run further than its bounds. So the flows of S12 were recorded again
and again over a link of the same parameters, and stand, mean beside mean, beside as many runs of the engine whose later
flow starts at as many places of one round trip. `python -m fixtures.record_shared_bottleneck`, as root, records anew.
"""

ALONE = """
Every flow again, but led: what the recorded sender sent and when, every ACK with its SACK blocks and time stamps as its
interface saw it, and when its retransmission timer fired are the record's. Scoreboard, losses found, recovery and
window are worked out from them by the code of a run, so that an error of the path or of the sender's timing can neither
hide an error of an equation nor pass for one. After each ACK of which TCP_INFO has a row, with equal counts of segments
received and of data packets sent, our window stands beside the kernel's. The scoreboards beside the first difference
tell whether the ACK was read differently or the window moved differently. The clock begins where in a tick the
recording did, as above.
"""

NS2 = """
ns-2 (2.35, as Debian has it) runs sessions of 31 s over one GEO satellite (125 ms up, 125 ms down) and over two (126,
207.4 and 125.2 ms), 90 repetitions a cell with independent random streams, which no two cells share; the engine runs
the same with ten times as many of its own.
Packets have 1500 octets. Every hop errs in both directions: ns-2's error model counts octets with the rate
1 - (1 - BER)^8, which gives each packet the loss of its own size, and strikes behind the link. The windows are not
limited by the ends, `tcpTick_` is 0.1 s, there is no handshake, and a queue takes as many packets as the path holds.
Beside this, with losses at given positions the engine sends the same packets at the same times as ns-2's Reno,
Newreno and Sack1 agents, timeouts included, once the phase of ns-2's clock, which it draws by chance, is the same.
"""

NS2_MODULES = """
The variants that ns-2 runs as modules of Linux 2.6.22 under its agent TCP/Linux, whose recovery is `ns2_tcp_linux`:
sessions of 31 s over two hops of 125 or of 250 ms, 40 repetitions a cell on each side, with random streams of their
own. ns-2 runs with `timestamps_`, `ts_resetRTO_` and `ts_echo_rfc1323_`, as the authors of TCP/Linux recommend, so
that packets have 1510 octets. The first ssthresh is what the path holds on both sides: from an unbounded one, hybla's
first round trip would send 2^16 packets. `cubic` has the module's beta of 819/1024. The rest is as above.
Beside this, with losses at given positions over a path without a queue the engine sends the packets of linux-reno and
westwood-plus at the same times as ns-2, and all but a few of those of cubic.
"""

TCP_LINUX = """
ns-2's `Agent/TCP/Linux` runs the congestion control modules of Linux 2.6.22 themselves. Both sides meet the same list
of losses, given as numbers of data packets, start at the same ssthresh, and are compared once per round trip at the
same data packet. Left out: from each loss on two windows of packets, for as long as either side repairs, since ns-2's
rate halving is no part of a module. What Linux 2.6.22 had otherwise is given to the engine as the variant's parameters.
Its agents Reno, Newreno and Sack1 stand beside the profile `ns2`. Variants that ns-2 lacks stand beside a recursion
worked by hand, a round trip a step (validation/by_hand.py). Pictures of all are on the variants' pages.
"""

CLOSED_FORMS = """
The `rfc` profile over a link that takes no time but its delay (the sawtooth: a link of 100 packets' BDP), every packet
acknowledged, start-up left out. `newreno` meets losses by chance and is held beside Padhye et al. (the full model, with
the flow's own mean timeout before back-off). The others lose one packet in 1/p at equal distance, or fill a drop-tail
queue. The mean window is packets sent per round trip.

Two things that the forms leave out lower the engine's figures under losses at equal distance, and the table holds each
against the engine by itself:

* sqrt(1.5/p) is the limit for many round trips between two losses. Counted in whole round trips, of which one repairs
  the loss while the window does not grow, the same sawtooth lies 1 to 13 % below it, and reno within 2 % of that.
* RFC 9438 §5.1 leaves out fast convergence (§4.7): near its plateau the window hardly grows, so that one packet more or
  less decides whether a flow counts as one that makes room and remembers 15 % less, from which it returns over tens of
  losses. It also takes the window for the curve itself, while ACKs close only 1 - 1/e of the distance to the target
  (§4.2) per round trip, of which one repairs without growth. Worked out in whole round trips, with fast convergence and
  without, RFC 9438's own rules lie up to 26 % below §5.1 where there are 9 round trips between two losses, and cubic
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
    if results.alone:
        parts += [_section(alone_table(results.alone), ALONE)]
    if results.ns2:
        parts += [_section(ns2_table(results.ns2), NS2)]
    if results.ns2_modules:
        parts += [_section(ns2_modules_table(results.ns2_modules), NS2_MODULES)]
    if results.tcp_linux:
        parts += [_section(tcp_linux_table(results.tcp_linux), TCP_LINUX)]
    if results.closed:
        parts += [_section(closed_form_table(results.closed), CLOSED_FORMS)]
    lines = missing(results)
    parts.append(
        "## What misses, and by how much\n\n" + ("\n".join(f"* {line}" for line in lines) or "Nothing.") + "\n"
    )
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
    return f"{cell.removesuffix('miss')}**miss**" if cell.endswith("miss") else cell
