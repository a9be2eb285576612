"""Lists of lost packets for ns-2 (ErrorModel/List) and ns-3 (ReceiveListErrorModel).

Packets are numbered from 0 in the order in which they reach the error model. See docs/channels/interop.md.
"""

from __future__ import annotations

import re

from hindflight.channels.formats.rows import MAX_PKTS, lost_positions, omissions, packets_from_losses
from hindflight.channels.formats.text import Source, parse_integer
from hindflight.channels.trace import Trace
from hindflight.toolkit.errors import ChannelError

_NS2 = re.compile(r"droplist\s+[\"{]?([^\"}\n;]*)")
_NS3 = re.compile(r"SetList\s*\(\s*\{([^}]*)\}", re.DOTALL)
PER_LINE = 16


def read_ns2(source: Source) -> Trace:
    """Read the numbers after `droplist`, or a file of numbers. Raises ChannelError with the line."""
    return _read(source, _NS2, "droplist")


def read_ns3(source: Source) -> Trace:
    """Read the numbers in `SetList ({…})`, or a file of numbers. Raises ChannelError with the line."""
    return _read(source, _NS3, "SetList ({…})")


def _read(source: Source, pattern: re.Pattern[str], word: str) -> Trace:
    joined = source.text.replace("\\\n", "  ")
    found = list(pattern.finditer(joined))
    if len(found) > 1:
        raise ChannelError(f"{source.path}: has {len(found)} lists ({word}); a trace is one link with one list")
    if found:
        first_line = joined.count("\n", 0, found[0].start(1)) + 1
        numbered = [(first_line + i, line) for i, line in enumerate(found[0][1].split("\n"))]
    else:
        numbered = list(source.lines())
    lost: set[int] = set()
    for line, text in numbered:
        for item in text.replace(",", " ").split():
            number = parse_integer(source, line, item, "a packet's number", MAX_PKTS - 1)
            if number in lost:
                raise source.error_at(line, f"packet {number} is repeated")
            lost.add(number)
    return packets_from_losses(sorted(lost), source.name)


def write_ns2(trace: Trace, where: str) -> tuple[str, list[str]]:
    """Return Tcl that creates the error model `em`, and what the text omits."""
    numbers, omitted = _numbers(trace, where)
    rows = " \\\n    ".join(" ".join(row) for row in numbers)
    return f'set em [new ErrorModel/List]\n$em unit pkt\n$em droplist "{rows}"\n', omitted


def write_ns3(trace: Trace, where: str) -> tuple[str, list[str]]:
    """Return C++ that creates the error model `em`, and what the text omits."""
    numbers, omitted = _numbers(trace, where)
    rows = ",\n             ".join(", ".join(row) for row in numbers)
    return (
        f"Ptr<ReceiveListErrorModel> em = CreateObject<ReceiveListErrorModel> ();\nem->SetList ({{{rows}}});\n",
        omitted,
    )


def _numbers(trace: Trace, where: str) -> tuple[list[list[str]], list[str]]:
    lost = [str(number) for number in lost_positions(trace, where).tolist()]
    if not lost:
        raise ChannelError(f"{where}: no packet of the trace is lost, so the list is empty")
    omitted = omissions(trace, {"packets", "size_bytes"})
    packets = trace.packets()
    delivered = len(packets) - packets["position"].null_count - int(lost[-1]) - 1
    if delivered:
        omitted.append(f"{delivered} packets after the last loss are omitted: a list ends with its last loss")
    if down := sum(cause == "outage" for cause in packets["cause"].to_pylist()):
        omitted.append(
            f"{down} of the {len(lost)} packets were lost in outages: an error list drops packets by number, whatever "
            "the time"
        )
    omitted.append("times and sizes of packets are omitted")
    return [lost[i : i + PER_LINE] for i in range(0, len(lost), PER_LINE)], omitted
