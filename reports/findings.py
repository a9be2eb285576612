"""Findings, runs, events and issues as the sentences and tables of a report.

Computes nothing. Does not depend on HTML or charts. reports/document.py lists the sections of `findings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import polars as pl

from hindflight.reports.frames import TIME, Flow, Tables, read, runs_with_subject
from hindflight.reports.link import events_of
from hindflight.reports.numbers import interval, quantity, with_minus_signs
from hindflight.reports.texts import NOT_TO_BE_RELIED_ON, SHARED_DIFFERENTLY
from hindflight.toolkit.schema import FINGERPRINT, OTHERS_AS_TCP_METRIC

COLUMNS = ("section", "subject", "metric", "value", "low", "high", "unit", "verdict", "text")
LOSSES_SHOWN = 200
ISSUES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a grid: its text, a second line in small type, and a verdict if it has one."""

    text: str
    small: str = ""
    verdict: str = ""
    number: bool = False
    code: bool = False
    """A hash, command or path, in which a line may break anywhere."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of the report. The first cell of a row is its heading. A `folded` grid shows its caption until opened."""

    caption: str
    head: tuple[str, ...]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    folded: bool = False


Row = Mapping[str, object]


_NUMERIC_SECTIONS = {"channel", "key_numbers"}
"""Sections whose texts say how a number was measured: out of its table, such a text needs the number's name."""


_SAID_ABOVE = {"unknown", "recommendation"}
"""Sections whose sentences the list of what is not known does not repeat."""


def findings_of(tables: Tables, section: str) -> list[Row]:
    """Return the rows of `findings` of `section`, in order."""
    return [row for row in read(tables, "findings", COLUMNS).to_dicts() if row["section"] == section]


def sentences(rows: Iterable[Row]) -> list[str]:
    """Return the distinct sentences of findings, in order. A row of unit `text` holds a value, not a sentence."""
    texts = (with_minus_signs(str(row["text"] or "").strip()) for row in rows if row["unit"] != "text")
    return list(dict.fromkeys(text for text in texts if text))


def unknowns(tables: Tables) -> list[str]:
    """Return sentences about what is not known: section `unknown`, then rows of other sections with that verdict."""
    rows = read(tables, "findings", COLUMNS).to_dicts()
    stated = [row for row in rows if row["section"] == "unknown"]
    others = [
        {**row, "text": f"{heading(row['metric'])}: {row['text']}"} if row["section"] in _NUMERIC_SECTIONS else row
        for row in rows
        if row["section"] not in _SAID_ABOVE and row["verdict"] == "unknown" and row["text"]
    ]
    return sentences([*stated, *others])


def key_numbers(rows: Sequence[Row], caption: str) -> Grid | None:
    """Return a grid with one row per number: name, value, interval and method; None if no row has a metric."""
    several = len({row["subject"] for row in rows}) > 1
    grid = Grid(caption, ("Quantity", "Value", "95 % interval", "How it was measured"))
    before = ""
    for row in rows:
        if not row["metric"]:
            continue
        name = heading(str(row["metric"]))
        low, high, unit, remark = _number(row["low"]), _number(row["high"]), str(row["unit"]), str(row["text"])
        cells = (
            Cell(f"{row['subject']}: {name}" if several else name),
            Cell(quantity(_number(row["value"]), unit, (low, high)), number=True, verdict=_verdict(row)),
            Cell(interval(low, high, unit), number=True),
            Cell("" if remark == before else remark),
        )
        before = remark
        grid.rows.append(cells)
    return grid if grid.rows else None


def by_subject(rows: Sequence[Row], caption: str, subject: str, *, folded: bool = False) -> Grid | None:
    """Return a grid with one row per subject and one column per metric; None if no row has a metric.

    Each cell holds the value, its interval and its verdict.
    """
    numbers = [row for row in rows if row["metric"]]
    metrics = list(dict.fromkeys(str(row["metric"]) for row in numbers))
    subjects = list(dict.fromkeys(str(row["subject"]) for row in numbers))
    found = {(row["subject"], row["metric"]): row for row in numbers}
    grid = Grid(caption, (subject, *(heading(metric) for metric in metrics)), folded=folded)
    for name in subjects:
        cells = [_cell(found.get((name, metric))) for metric in metrics]
        grid.rows.append((Cell(name), *cells))
    return grid if grid.rows else None


def self_check_warning(tables: Tables) -> str | None:
    """Return the warning of a self-check whose best candidate for the captured variant misses the captured goodput, or
    does so with the other flows replayed as TCP, as the predictions replay them; None if it misses neither."""
    if _missed(tables, "goodput_difference"):
        return NOT_TO_BE_RELIED_ON
    return SHARED_DIFFERENTLY if _missed(tables, OTHERS_AS_TCP_METRIC) else None


def _missed(tables: Tables, metric: str) -> bool:
    """Return whether the best candidate, whose row is the first one, fails in `metric`."""
    rows = [row for row in findings_of(tables, "self_check") if row["metric"] == metric]
    return bool(rows) and rows[0]["verdict"] == "fail"


def how_predicted(rows: Sequence[Row]) -> Grid | None:
    """Return a folded grid of what the interval of each prediction is made of; None if no row says it."""
    said: list[tuple[Cell, ...]] = [
        (Cell(str(row["subject"])), Cell(with_minus_signs(str(row["text"])))) for row in rows if row["text"]
    ]
    caption = "What the interval of each goodput is made of"
    return Grid(caption, ("Variant", "Prediction for one flight"), said, folded=True) if said else None


_HEADINGS = {
    "by_position": "By position",
    "by_resampled": "Resampled blocks",
    "by_time": "By the clock",
    "by_model": "Fitted model",
    "spread": "Maximum minus minimum",
    "acknowledged_not_yet_onward_bytes": "Acknowledged, not yet onward",
}
"""Headings of metrics whose names alone do not say what the sentences next to the table call them."""


def heading(metric: str) -> str:
    """Return a metric's name as a heading, without its unit: "Base RTT" for "base_rtt_ns"."""
    if metric in _HEADINGS:
        return _HEADINGS[metric]
    words = re.sub(r"_(?:bps|ns|s|bytes|pkts)$", "", metric).replace("_", " ")
    words = words.replace(" percent ", " % ")
    spelled = re.sub(r"\b(?:rtt|rto|ack|ber|tcp|utc|ecn|sha256)(?=s?\b)", lambda match: match[0].upper(), words)
    return spelled[:1].upper() + spelled[1:]


def _cell(row: Row | None) -> Cell:
    if row is None:
        return Cell("–", number=True)
    unit, low, high = str(row["unit"]), _number(row["low"]), _number(row["high"])
    if unit == "text":
        return Cell(with_minus_signs(str(row["text"])), verdict=_verdict(row))
    value = quantity(_number(row["value"]), unit, (low, high))
    return Cell(value, interval(low, high, unit), _verdict(row), number=True)


def _verdict(row: Row) -> str:
    if row["section"] == "what_if" and row["metric"] == "goodput_gain":
        if row["verdict"] == "unknown":
            return "undecided"
        return _sign_of_interval(_number(row["low"]), _number(row["high"]))
    return "" if row["verdict"] == "info" or row["section"] == "interruptions" else str(row["verdict"])


def _sign_of_interval(low: float | None, high: float | None) -> str:
    """Return `more` or `less` by the sign of an interval; `undecided` if it contains zero or is missing."""
    if low is not None and low > 0:
        return "more"
    return "less" if high is not None and high < 0 else "undecided"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


_RUN_COLUMNS = (
    ("seed", "Seed", ""),
    ("goodput_bps", "Goodput", "bit/s"),
    ("segments_out", "Segments sent", ""),
    ("retransmissions", "Retransmissions", ""),
    ("rtos", "RTOs", ""),
    ("channel_losses", "Data packets lost: channel", ""),
    ("queue_losses", "Data packets lost: full queue", ""),
    ("aqm_losses", "Data packets lost: AQM", ""),
    ("outage_losses", "Data packets lost: outage", ""),
    ("control_losses", "Packets without data lost (ACKs)", ""),
    ("ecn_marks", "Packets marked (ECN)", ""),
    ("ecn_reductions", "Window decreases by ECN", ""),
    ("rtt_p95_ns", "RTT at the sender, 95th percentile", "ns"),
    ("one_way_delay_p95_ns", "One-way delay, 95th percentile", "ns"),
    ("proxy_held_max_bytes", "Maximum buffered by the proxy", "bytes"),
    ("proxy_lost_bytes", "Acknowledged by the proxy and lost", "bytes"),
    ("proxy_corrupted_bytes", "Damaged by the proxy and read", "bytes"),
    ("proxy_refused", "Refused by the proxy", ""),
    ("proxy_unsplit", "Passed unsplit", ""),
    ("proxy_timeouts", "Timed out at the proxy", ""),
    ("reset_ns", "Reset after", "ns"),
)
"""Columns of the table of runs: column of `runs`, heading, unit."""

_OPTIONAL_COLUMNS = {
    "aqm_losses",
    "outage_losses",
    "control_losses",
    "ecn_marks",
    "ecn_reductions",
    "proxy_held_max_bytes",
    "proxy_lost_bytes",
    "proxy_corrupted_bytes",
    "proxy_refused",
    "proxy_unsplit",
    "proxy_timeouts",
    "reset_ns",
}
"""Columns that are left out if they are zero or null in all runs."""


def is_replayed(tables: Tables) -> bool:
    """Return whether the tables hold a run of the engine, or what a run left in `findings`."""
    left = read(tables, "findings", ["section"])["section"].is_in(["self_check", "what_if"])
    return bool(left.any()) or not read(tables, "runs", ["run_id"]).is_empty()


def any_findings(tables: Tables) -> bool:
    """Return whether `findings` has any row."""
    return not read(tables, "findings", ["section"]).is_empty()


def replayed_runs(tables: Tables, purpose: str, caption: str) -> Grid | None:
    """Return a grid with one row per run of `purpose` whose channel is not resampled; None without such a run."""
    runs = runs_with_subject(tables, ["purpose", "channel_mode", *(name for name, _, _ in _RUN_COLUMNS)])
    mine = runs.filter((pl.col("purpose") == purpose) & (pl.col("channel_mode") != "resampled"))
    if mine.is_empty():
        return None
    absent = {name for name in _OPTIONAL_COLUMNS if not (mine[name].fill_null(0) > 0).any()}
    if mine["subject"].n_unique() == mine.height:
        absent.add("seed")
    shown = [column for column in _RUN_COLUMNS if column[0] not in absent]
    head = ("Variant", *(title for _, title, _ in shown))
    grid = Grid(caption, head, folded=True)
    for row in mine.to_dicts():
        numbers = [
            Cell("–" if row[name] is None else quantity(_number(row[name]), unit), number=True)
            for name, _, unit in shown
        ]
        grid.rows.append((Cell(str(row["subject"])), *numbers))
    return grid


def loss_table(tables: Tables, flow: Flow) -> Grid | None:
    """Return the first losses of a flow with cause and evidence as a grid, the timeline's text alternative.

    None if the flow has no loss.
    """
    rows = events_of(tables, flow).filter(pl.col("kind") == "loss")
    if rows.is_empty():
        return None
    shown = rows.head(LOSSES_SHOWN)
    what = f"the first {shown.height} of {rows.height:,}" if rows.height > shown.height else f"all {rows.height:,}"
    time = "Time [UTC]" if flow.view.utc else "Time [s]"
    grid = Grid(f"Losses as a table ({what})", (time, "Cause", "Sequence number", "Record", "Evidence"), folded=True)
    for row in shown.to_dicts():
        octet = "" if row["seq_start"] is None else f"{row['seq_start']:,}"
        record = "" if row["record"] is None else f"{row['record']:,}"
        cells = (
            Cell(_time(row[TIME], flow)),
            Cell(row["cause"]),
            Cell(octet, number=True),
            Cell(record, number=True),
            Cell(row["evidence"] or ""),
        )
        grid.rows.append(cells)
    return grid


def _time(value: float, flow: Flow) -> str:
    if not flow.view.utc:
        return f"{value:,.3f}"
    return datetime.fromtimestamp(value / 1e3, UTC).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")


def issue_table(tables: Tables) -> Grid | None:
    """Return a grid of the records that could not be decoded; None if there is none."""
    rows = read(tables, "issues", ["input_id", "record", "offset", "kind", "text"])
    if rows.is_empty():
        return None
    shown = rows.head(ISSUES_SHOWN)
    what = f"the first {shown.height} of {rows.height:,}" if rows.height > shown.height else f"all {rows.height:,}"
    grid = Grid(
        f"Records that could not be decoded ({what})",
        ("Kind", "Input", "Record", "Offset [B]", "Description"),
        folded=True,
    )
    for row in shown.to_dicts():
        numbers = [Cell(f"{row[name]:,}", number=True) for name in ("input_id", "record", "offset")]
        grid.rows.append((Cell(row["kind"]), *numbers, Cell(row["text"])))
    return grid


def mappings(rows: object, caption: str) -> Grid | None:
    """Return an entry of a manifest (a list of mappings, a list of values or one mapping) as a grid.

    None for an empty entry and for any other type.
    """
    if isinstance(rows, Mapping) and rows:
        return Grid(caption, ("Name", "Value"), [(Cell(str(k)), Cell(_plain(v))) for k, v in rows.items()])
    if isinstance(rows, str) or not isinstance(rows, Sequence) or not rows:
        return None
    if not all(isinstance(row, Mapping) for row in rows):
        return Grid(caption, (caption,), [(Cell(_plain(row), code=True),) for row in rows])
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    entries = [tuple(_entry(name, row.get(name)) for name in names) for row in rows]
    return Grid(caption, tuple(heading(name) for name in names), entries)


def _entry(name: str, value: object) -> Cell:
    if name.endswith("_bytes") and isinstance(value, int):
        return Cell(quantity(value, "bytes"), number=True)
    return Cell(_plain(value), code=name in {"sha256", "command", "path"})


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{k} = {_plain(v)}" for k, v in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(_plain(v) for v in value)
    return str(value)


def run_provenance(tables: Tables) -> Grid | None:
    """Return the scenarios, channel modes and seeds of the runs as a grid; None without runs."""
    runs = read(tables, "runs", ["scenario", "purpose", "channel_mode", "seed", "role"])
    runs = runs.filter(pl.col("role") == "under_test")
    if runs.is_empty():
        return None
    grouped = runs.group_by("scenario", "purpose", "channel_mode", maintain_order=True).agg(
        pl.col("seed").unique().sort(), pl.len().alias("runs")
    )
    grid = Grid("Runs", ("Scenario", "Purpose", "Channel", "Runs", "Seeds"))
    for scenario, purpose, mode, seeds, count in grouped.iter_rows():
        grid.rows.append(
            (
                Cell(scenario),
                Cell(purpose.replace("_", "-")),
                Cell(mode),
                Cell(f"{count:,}", number=True),
                Cell(_ranges(seeds)),
            )
        )
    return grid


def setup(rows: Sequence[Row]) -> Grid | None:
    """Return what the scenario gives its flows, links and proxies as a grid; None without rows."""
    caption = "The scenario: stack profile of each flow and what differs from it, losses of links, proxies"
    grid = Grid(caption, ("Flow, link or proxy", "Parameter", "Value"))
    for row in rows:
        if row["metric"] != FINGERPRINT:
            grid.rows.append((Cell(str(row["subject"])), Cell(heading(str(row["metric"]))), Cell(str(row["text"]))))
    return grid if grid.rows else None


def _ranges(values: Sequence[int]) -> str:
    """Return sorted integers as ranges: "1 to 20, 42"."""
    spans: list[list[int]] = []
    for value in values:
        if spans and value == spans[-1][1] + 1:
            spans[-1][1] = value
        else:
            spans.append([value, value])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in spans)
