"""Writes docs/accuracy.md: the lines of `python -m validation captures` as a table per subject, with what they mean.

Depends on the lines only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import fill

from validation.captures.lines import Line

INTRO = """# Accuracy on links that the code had not seen

The errors of the analysis and of the predictions, measured on recordings of the Linux stack (6.18; reno, cubic and bbr)
over emulated links drawn at random: GEO, MEO, LEO, HAPS and short paths, random and burst loss, steps of rate and
delay, breaks, ACK loss, SACK or timestamps off, a limited receive window, an application that pauses, a second flow.
The fate of every packet is known. `python -m validation captures DIR... --what-if --write docs/accuracy.md` writes
this page.

{judged}

* **Losses** are judged transmission by transmission; a loss at the receiver must name the right copy. How many losses a
  flow has is counted in the recording, those included of which the capture leaves open whether the packet arrived.
* **Causes**: the mechanism of each retransmission, by the kernel's state at the next poll; a retransmission is
  spurious if an earlier copy had been delivered.
* **cwnd** per round trip, where the network limits the sender; data in flight for bbr, which seldom fills its cwnd.
  At the receiver, timestamps show it; without them, sequence numbers do from one recovery to the next.
* **Channel**: the cause of each loss, and the delay and the rate of each stretch of 200 data packets or more.
  Packets mark an edge of an outage to one RTT if the last one that passed and the first one lost, or the last one lost
  and the next one that passed, are two RTTs apart at most; all packets of both directions count, with their true fates.
* **Engine**: the same link, losses and application replayed with the variant that was recorded; how late the emulator
  delivered each packet, and where in a step of the kernel's clock a recording began, as recorded. Linux's own spread is
  the range over five recordings of a run or more, with other random losses; only runs whose goodput misses the bound
  were recorded again, so that for percentiles of cwnd it is the least that Linux varies. Delays below a millisecond
  decide much of what two flows or a bbr flow do. The median is that of five replays: the first with
  the delays as recorded, the others with the same delays rotated by a random offset.
* **What-if**: each variant predicted from the captures of the other two, compared with its recording on the same
  link, whose random losses were others. The network limits a flow if it reduced its window five times or, for bbr,
  if nothing else limited it for 10 s. The self-check replays other flows of a capture as the packets that they sent.
  Captures at the receiver are rebuilt first ([how](sender-view.md)); those without timestamps are refused, and the
  other lines are of the rest. The goodput of a recording is what arrived until its program stopped writing; that of a
  prediction counts to the last new data ([why](whatif.md)); separate lines count both so.
* **Flights over the true link**: 39 flows of the engine for each recorded flow, over the link as configured, with
  losses generated from its loss model, the recorded delays of the emulator rotated, and lost ACKs and the writes of the
  application as recorded. The range of 39 such flights contains the next one with 95 % probability. Its width, relative
  to the median, shows how much goodput varies by chance even if the link and the application are known exactly: a
  prediction from a capture can hardly be much narrower and hold as often. Where little is random, the recording lies
  outside by what the engine and Linux differ in.

The bounds are goals. A value that misses its bound is marked `fail`.
"""


UNKNOWN = "What the analysis says is unknown counts as neither right nor wrong; its share is given."
PAGE_WIDTH = 118


def render(lines: Sequence[Line], what: str, left_out: Sequence[tuple[str, str]]) -> str:
    """Return the page as Markdown; `what` says which recordings were judged."""
    named = "; ".join(f"{run} ({reason})" for run, reason in left_out) or "none"
    judged = f"{what} All runs count, but for those that the recorder disturbed: {named}. {UNKNOWN}"
    parts = [INTRO.format(judged=fill(judged, PAGE_WIDTH, break_long_words=False))]
    for subject, own in groupby(lines, key=lambda line: line.subject):
        rows = [
            f"| {line.metric} | {_number(line.value)} | {_bound(line)} | {line.of} | {_verdict(line)} |" for line in own
        ]
        head = "| quantity | value | bound | of | verdict |\n|---|---|---|---|---|\n"
        parts.append(f"## {subject[0].upper()}{subject[1:]}\n\n{head}" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _bound(line: Line) -> str:
    return "" if line.bound is None else f"{'≥' if line.at_least else '≤'} {_number(line.bound)}"


def _verdict(line: Line) -> str:
    return f"**{line.verdict}**" if line.verdict == "fail" else line.verdict
