"""The table of outages and handovers says where they were, as far as a flight log does."""

from __future__ import annotations

from typing import Any

from hindflight.replay.experiment.interruptions import interruption_rows
from hindflight.toolkit.schema import table_from_rows
from tests.channels.extraction.test_interruptions import SECOND, interval, steady
from tests.reports.conftest import required

CHANNEL = [interval(0, 20), interval(8, 9, lost=True), interval(15, 16, lost=True)]


def test_the_summary_has_the_number_of_outages_and_the_longest() -> None:
    segments = table_from_rows("segments", steady(stalled=(8, 9)))
    said = interruption_rows(table_from_rows("channel", CHANNEL), segments, "a2b")[0]["text"]
    assert said.startswith("The link had 2 outages, 2.00 s in all. In the longest, which began at 1970-01-01 00:00:08")
    assert " UTC, new data was acknowledged after 1.1" in said


def test_a_path_changes_at_once() -> None:
    channel = table_from_rows("channel", [interval(0, 8), interval(8, 20, delay_ms=80)])
    said, *rows = interruption_rows(channel, table_from_rows("segments", steady(stalled=(12, 13))), "a2b")
    assert said["text"] == "The delay or rate of the path changed once."
    durations = [(row["value"], row["text"]) for row in rows if row["metric"] == "duration"]
    assert durations == [(None, "-")]


def _found(logged: list[tuple[float, str, float]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        required("telemetry", t_ns=int(s * SECOND), name=name, value=value) for s, name, value in logged
    ]
    return interruption_rows(
        table_from_rows("channel", CHANNEL),
        table_from_rows("segments", steady(stalled=(8, 9))),
        "a2b",
        table_from_rows("telemetry", rows),
    )


def _places(logged: list[tuple[float, str, float]]) -> list[str]:
    return [row["text"] for row in _found(logged) if row["metric"] == "place"]


def _said(logged: list[tuple[float, str, float]]) -> str:
    return str(_found(logged)[0]["text"])


def test_an_outage_has_the_position_that_was_in_force_when_it_began() -> None:
    log = [
        (t, name, value + t / 100) for t in (0.0, 7.5, 8.5) for name, value in (("lat_deg", 48.0), ("lon_deg", -11.0))
    ]
    assert _places(log) == ["48.07500°, -10.92500°", "not logged"], "the log ends before the second"
    assert "began at 1970-01-01 00:00:08.000 UTC at 48.07500°, -10.92500°, new data" in _said(log)
    log += [(t, "alt_m", 20_000.4) for t in (0.0, 20.0)]
    assert _places(log)[0] == "48.07500°, -10.92500°, 20,000 m"


def test_without_both_coordinates_there_is_no_place() -> None:
    assert _places([]) == []
    assert _places([(0.0, "lat_deg", 48.0), (20.0, "lat_deg", 48.0)]) == []
