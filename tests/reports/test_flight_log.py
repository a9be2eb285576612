"""Charts of a flight log: only its values during the flow, one chart for each unit, colours from the flow."""

from __future__ import annotations

import csv
import io
import re
from itertools import pairwise
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hindflight.reports import charts
from hindflight.reports.charts import View
from hindflight.reports.charts.flight_log import _classed
from hindflight.reports.sections import Figure, Section, Source, sections
from hindflight.toolkit.errors import ReportError
from hindflight.toolkit.schema import table_from_rows
from tests.reports.conftest import MSS, RTT_NS, SEGMENTS, START_NS, Tables, required

UNITS = {"lat_deg": "deg", "lon_deg": "deg", "alt_m": "m", "roll_deg": "deg", "snr_db": "dB"}


@pytest.fixture
def logged(tables: Tables) -> Tables:
    """The captured flow with a log that begins before it and goes on after it: a value of each kind per second."""
    rows = [
        required("telemetry", t_ns=START_NS + s * 10**9, source="flight_csv", name=name, unit=unit, value=float(s))
        for s in range(-5, 60)
        for name, unit in UNITS.items()
    ]
    return {**tables, "telemetry": table_from_rows("telemetry", rows)}


def data(chart: Any) -> list[list[dict[str, str]]]:
    spec = chart.to_dict()
    return [list(csv.DictReader(io.StringIO(spec["datasets"][layer["data"]["name"]]))) for layer in spec["layer"]]


def test_a_chart_for_each_unit_but_not_for_places(logged: Tables) -> None:
    assert charts.flight_units(logged) == ["dB", "deg", "m"]
    spec = charts.flight_values(logged, unit="deg").to_dict()
    assert spec["title"]["text"] == "Flight log: roll_deg"


def test_values_outside_of_the_flow_are_left_out(logged: Tables) -> None:
    (rows,) = [rows for rows in data(charts.flight_values(logged, unit="m")) if "value" in rows[0]]
    times = [float(row["t"]) for row in rows]
    assert times[0] == 0
    assert times == [float(row["value"]) for row in rows]  # the log's value is the second
    assert times[-1] < 59


def test_colours_are_those_of_the_flow(logged: Tables) -> None:
    _, marks = data(charts.track(logged))
    interval_s = min(b - a for a, b in pairwise(sorted({float(row["t"]) for row in marks})))
    octets = sum(float(row["shade"]) for row in marks) * 1e6 / 8 * interval_s
    assert octets == (SEGMENTS - 1) * MSS  # all but those of the first ACK
    assert all(float(row["lat"]) == float(row["lon"]) for row in marks)
    late = [row for row in marks if float(row["lat"]) > 1]
    assert all(abs(float(row["lat"]) - float(row["t"])) <= 1 for row in late)
    _, delays = data(charts.track(logged, colour="rtt"))
    assert all(abs(float(row["shade"]) - RTT_NS / 1e6) < 3 for row in delays)
    _, resent = data(charts.track(logged, colour="loss"))
    assert sum(float(row["shade"]) for row in resent) == 4


def test_a_metre_is_as_long_to_the_east_as_to_the_north(logged: Tables) -> None:
    encoding = charts.track(logged).to_dict()["layer"][1]["encoding"]
    assert "width" in encoding["x"]["scale"]["domain"]["expr"]
    assert "height" in encoding["y"]["scale"]["domain"]["expr"]


def test_classes_of_a_track_are_written_out() -> None:
    _, long = _classed(pl.DataFrame({"shade": [float(ms) for ms in range(0, 1200, 10)]}))
    assert long[0].startswith("0 to 2")
    assert re.fullmatch(r"more than 1,\d\d\d", long[-1])
    _, short = _classed(pl.DataFrame({"shade": [0.01 * n for n in range(100)]}))
    assert re.fullmatch(r"0 to 0\.\d\d", short[0])


def test_without_a_log_there_is_a_reason_and_no_chart(tables: Tables) -> None:
    assert charts.flight_units(tables) == []
    with pytest.raises(ReportError, match="No flight log"):
        charts.flight_values(tables)
    with pytest.raises(ReportError, match="latitude"):
        charts.track(tables)


@pytest.mark.parametrize("colour", ["goodput", "rtt", "loss"])
def test_a_capture_without_what_colours_the_track_is_a_reason(logged: Tables, colour: str) -> None:
    unanswered = {**logged, "segments": table_from_rows("segments", [])}
    with pytest.raises(ReportError, match=f"colours the track by {colour}"):
        charts.track(unanswered, colour=colour)


def test_an_unknown_colour_names_the_known_ones(logged: Tables) -> None:
    with pytest.raises(ReportError, match="goodput, rtt, loss"):
        charts.track(logged, colour="mood")


def keys(parts: list[Any]) -> set[str]:
    found: set[str] = set()
    for part in parts:
        if isinstance(part, Section):
            found |= keys(part.parts)
        elif isinstance(part, Figure):
            found.add(part.key)
    return found


def test_the_log_stands_directly_below_the_first_chart(logged: Tables) -> None:
    happened = next(section for section in sections(Source(logged), {}) if section.key == "what_happened")
    flow = next(part for part in happened.parts if isinstance(part, Section))
    drawn = [part for part in flow.parts if isinstance(part, Figure)]
    assert [part.key for part in drawn[:4]] == [
        f"flow-1-{name}" for name in ("time_sequence", "flight_dB", "flight_deg", "flight_m")
    ]
    assert {part.group for part in drawn[:6]} == {"flow-1"}, "they zoom together"


def test_the_report_has_them_with_the_flow(logged: Tables, tables: Tables) -> None:
    tracks = {"flow-1-track_goodput", "flow-1-track_rtt", "flow-1-track_loss"}
    flight = {"flow-1-flight_dB", "flow-1-flight_deg", "flow-1-flight_m", *tracks}
    assert flight <= keys(list(sections(Source(logged), {})))
    assert not flight & keys(list(sections(Source(tables), {})))
    telemetry = logged["telemetry"]
    places = telemetry.filter(pc.is_in(telemetry["name"], pa.array(["lat_deg", "lon_deg"])))
    only = keys(list(sections(Source({**logged, "telemetry": places}), {})))
    assert tracks <= only, "a log of places and nothing else"
    assert "flow-1-flight_m" not in only


def test_the_title_of_a_track_says_what_colours_it(logged: Tables) -> None:
    titles = [charts.track(logged, colour=colour).to_dict()["title"]["text"] for colour in charts.TRACK_COLOURS]
    assert titles == [f"Track, coloured by {of}" for of in ("goodput", "round-trip time", "retransmissions")]


def test_a_cut_view_cuts_the_log_too(logged: Tables) -> None:
    (rows,) = [r for r in data(charts.flight_values(logged, View(from_s=1.5, to_s=3.5), unit="m")) if "value" in r[0]]
    assert [float(row["t"]) for row in rows] == [2, 3]
