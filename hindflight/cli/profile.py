"""Rows of a capture as the native reader writes them: `flows`, and with the fields of another program `flows --profile
tcptrace` and `segments --profile wireshark`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.cli.filters import names
from hindflight.cli.layout import print_fitting
from hindflight.cli.output import SHOWN_ROWS, Row, say
from hindflight.cli.times import capture_span
from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.text import endpoint

if TYPE_CHECKING:
    from hindflight.toolkit.capture import FlowStream, TextStream

SHOWN_FLAGS = 15
"""Flags of `tcp.analysis`, which a table shows in one column."""


def print_flows(sources: list[Path], profile: str, times: tuple[str, str], wide: bool, form: str) -> None:
    """Print the flows of a capture between two times as CSV or JSON (`form`), or as a table of the main fields."""
    from hindflight.profiles import open_profile

    limits = (None, None) if sources[0].is_dir() else capture_span(sources, *times)
    stream = open_profile(sources, "flows", profile, json=form != "csv", limits=limits)
    _print(stream, form, f'"profile": "{profile}", "flows"', _shown, wide)
    _report_issues(stream)


def print_segments(sources: list[Path], profile: str, wide: bool, form: str) -> None:
    """Print the analysis of the segments of a capture as CSV or JSON (`form`), or as a table of the main fields."""
    from hindflight.profiles import open_profile

    stream = open_profile(sources, "segments", profile, json=form != "csv")
    _print(stream, form, f'"profile": "{profile}", "segments"', _analysis, wide)
    _report_issues(stream)


def print_all_flows(stream: FlowStream, shown_row: Callable[[Row, int], Row], wide: bool, form: str) -> int:
    """Print all flows of a capture as CSV or JSON (`form`), or as a table; return how many there are."""
    text = stream.text()
    first = next(text, b"")  # The time of the first segment is known then.
    start_ns = stream.totals()[1]
    _print_text(
        chain([first], text), form, f'"start_ns": {start_ns}, "flows"', lambda row: shown_row(row, start_ns), wide
    )
    return stream.totals()[0]


def refuse_conditions(rows: str, given: Mapping[str, object]) -> None:
    """HindflightError if one of the options `given` by name has a value: a profile gives all `rows`."""
    if any(value not in (None, "", 0, False) for value in given.values()):
        *others, last = given
        options = f"{', '.join(others)} and {last}"
        raise HindflightError(
            f"--profile gives every {rows} of a capture", f"leave out {options}, or leave out --profile"
        )


def _report_issues(stream: TextStream) -> None:
    if issues := stream.issues():
        source, record, _, text = issues[0]
        more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
        say(f"{source}: {f'record {record}: ' if record else ''}{text}{more}; hindflight info counts them by kind")


def _print(stream: TextStream, form: str, head: str, shown_row: Callable[[Row], Row], wide: bool) -> None:
    if _print_text(stream.text(), form, head, shown_row, wide) == 0:
        say(f"no TCP segment in {names(stream.paths)}")


def _print_text(
    chunks: Iterator[bytes], form: str, head: str, shown_row: Callable[[Row], Row], wide: bool
) -> int | None:
    """Print rows as CSV, as JSON in an object that starts with `head`, or as a table; return the rows of a table."""
    if form == "csv":
        _write(chunks)
    elif form == "json":
        _write(chain([f"{{{head}: [".encode()], chunks, [b"\n]}\n"]))
    else:
        return _print_table(chunks, shown_row, wide)
    return None


def _write(chunks: Iterator[bytes]) -> None:
    """Write what is only numbers and our own names: no cell needs escaping."""
    sys.stdout.flush()
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def _print_table(chunks: Iterator[bytes], shown_row: Callable[[Row], Row], wide: bool) -> int:
    """Print the first rows as a table and return the number of all."""
    shown: list[Row] = []
    count = 0
    for chunk in chunks:
        lines = chunk.split(b"\n")[1:]  # Each row begins with a line break.
        count += len(lines)
        shown += [shown_row(json.loads(line.removesuffix(b","))) for line in lines[: SHOWN_ROWS - len(shown)]]
    if shown:
        print_fitting(list(shown[0]), shown, wide, total=count)
    return count


def _analysis(row: Row) -> Row:
    """The columns of the table of segments."""
    prefix = "tcp.analysis."
    flags = [name for name in row if name.startswith(prefix)][:SHOWN_FLAGS]
    return {
        "frame": row["frame.number"],
        "stream": row["tcp.stream"],
        "analysis": " ".join(name.removeprefix(prefix) for name in flags if row[name]) or None,
        "bytes in flight": row[f"{prefix}bytes_in_flight"],
        "acks": row[f"{prefix}acks_frame"],
        "RTT [s]": row[f"{prefix}ack_rtt"],
        "RTO [s]": row[f"{prefix}rto"],
        "scale": row["tcp.window_size_scalefactor"],
        "completeness": row["tcp.completeness"],
    }


def _shown(row: Row) -> Row:
    """The columns of the table, the most important first."""
    shown = {
        "conn": row["conn_#"],
        "host a": endpoint(row["host_a"], row["port_a"]),
        "host b": endpoint(row["host_b"], row["port_b"]),
    }
    fields = {
        "packets": "total_packets",
        "unique bytes": "unique_bytes_sent",
        "rexmt pkts": "rexmt_data_pkts",
        "RTT avg [ms]": "RTT_avg",
        "max owin": "max_owin",
        "throughput [B/s]": "throughput",
    }
    both = {label: tuple(row[f"{name}_{way}"] for way in ("a2b", "b2a")) for label, name in fields.items()}
    texts = {label: " / ".join("-" if value is None else str(value) for value in pair) for label, pair in both.items()}
    return shown | {"complete": row["complete_conn"]} | texts
