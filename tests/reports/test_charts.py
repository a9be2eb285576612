from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
import vl_convert

from hindflight.reports import charts
from hindflight.reports.bundle import vega_lite_version
from hindflight.reports.charts import View
from hindflight.reports.charts.path import bin_width_s
from hindflight.reports.style import DARK
from hindflight.toolkit.errors import ReportError
from hindflight.toolkit.schema import table_from_rows
from tests.reports.conftest import (
    LOST,
    MSS,
    PER_ROUND,
    RTT_NS,
    SEGMENTS,
    START_NS,
    Tables,
    finding,
    flow_events,
    flow_instruments,
    flow_row,
    flow_segments,
    required,
    run_row,
)

Draw = Callable[[Tables], Any]
ALL: dict[str, Draw] = {
    name: getattr(charts, name)
    for name in (
        "time_sequence",
        "cwnd",
        "rtt",
        "throughput",
        "losses",
        "self_check_sequence",
        "self_check_cwnd",
        "what_if_goodput",
        "what_if_difference",
        "goodput_and_delay",
        "what_if_cwnd",
    )
}


def nodes(part: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping inside a specification."""
    if isinstance(part, dict):
        yield part
        for value in part.values():
            yield from nodes(value)
    elif isinstance(part, list):
        for value in part:
            yield from nodes(value)


def layer_rows(spec: dict[str, Any], label: str) -> list[dict[str, str]]:
    """Return the data of the layer whose series is `label`."""
    for layer in spec["layer"]:
        if any(step.get("calculate") == f'"{label}"' for step in layer.get("transform", ())):
            return rows_of(spec, layer.get("data", spec.get("data"))["name"])
    raise KeyError(label)


def rows_of(spec: dict[str, Any], name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(spec["datasets"][name])))


@pytest.mark.parametrize("name", ALL)
def test_every_chart_compiles_and_renders(name: str, tables: Tables) -> None:
    spec = ALL[name](tables).to_dict()
    svg = vl_convert.vegalite_to_svg(spec, vl_version=vega_lite_version())
    assert len(re.findall(r"<(?:path|rect|line)\b", svg)) > 10
    assert "NaN" not in svg
    assert len(spec["description"]) > 40


@pytest.mark.parametrize("name", ALL)
def test_axes_have_titles_with_units_and_colours_have_dark_counterparts(name: str, tables: Tables) -> None:
    spec = ALL[name](tables).to_dict()
    titles = [axis["title"] for node in nodes(spec) if isinstance(axis := node.get("axis"), dict) and axis.get("title")]
    assert titles
    assert all(re.search(r"\[[^\]]+\]$", title) or title == "Events" for title in titles), titles
    colours = set(re.findall(r"#[0-9a-f]{6}\b", str({k: v for k, v in spec.items() if k != "datasets"})))
    assert colours <= set(DARK)


def test_time_sequence_draws_every_segment(tables: Tables) -> None:
    spec = charts.time_sequence(tables).to_dict()
    sent, retransmitted = layer_rows(spec, "data segment"), layer_rows(spec, "retransmission")
    assert len(sent) == SEGMENTS
    assert len(retransmitted) == len(LOST)
    assert {int(row["seq"]) for row in retransmitted} == {1 + n * MSS for n in LOST}
    assert float(sent[0]["t"]) == 0.5
    assert int(sent[0]["seq_end"]) == 1 + MSS
    assert [int(row["seq"]) for row in layer_rows(spec, "lost")] == [1 + n * MSS for n in LOST]
    edge = layer_rows(spec, "window edge")
    acked = layer_rows(spec, "cumulative ACK")
    assert [int(row["seq"]) for row in edge] == [int(row["seq"]) + 64_000 for row in acked]
    assert "subtitle" not in spec["title"]
    assert len(layer_rows(spec, "SACK block")) > 0


def test_long_flow_is_decimated_with_a_note() -> None:
    count = 60_000
    segments = table_from_rows("segments", [required("segments", flow_id=1, record=1)])
    row = pl.DataFrame(segments)
    numbers = pl.int_range(count, eager=True)
    long = pl.concat([row] * count).with_columns(
        record=numbers.cast(pl.UInt64),
        t_ns=numbers * 1_000_000,
        seq=1 + numbers * 1000,
        payload_bytes=pl.lit(1000, pl.UInt32),
    )
    spec = charts.time_sequence({"segments": long}, View(bins=500)).to_dict()
    sent = layer_rows(spec, "data segment")
    assert len(sent) < 4000
    assert sum(int(row["merged"]) for row in sent) == count
    assert min(int(row["seq"]) for row in sent) == 1
    assert max(int(row["seq_end"]) for row in sent) == 1 + count * 1000
    assert re.search(r"Decimated: [\d,]+ marks represent 60,000 ", spec["title"]["subtitle"][0])


def test_cwnd_draws_both_sources_and_phases(tables: Tables) -> None:
    spec = charts.cwnd(tables).to_dict()
    kernel, inferred = layer_rows(spec, "cwnd, tcp_info"), layer_rows(spec, "cwnd, inferred from packets")
    assert kernel == inferred
    assert float(kernel[0]["t"]) == 0.5
    assert int(kernel[0]["bytes"]) == 10 * MSS
    shades = next(rows_of(spec, layer["data"]["name"]) for layer in spec["layer"] if layer["mark"]["type"] == "rect")
    assert [(s["phase"], float(s["t"]), float(s["t_end"])) for s in shades] == [
        ("slow start", 0.5, 1.5),
        ("fast recovery", 2.5, 3.0),
    ]
    thresholds = layer_rows(spec, "ssthresh")
    assert [row["bytes"] for row in thresholds] == ["", str(20 * MSS), str(20 * MSS)]


def test_rtt_draws_every_sample(tables: Tables) -> None:
    spec = charts.rtt(tables).to_dict()
    samples = layer_rows(spec, "RTT sample")
    measured = pl.DataFrame(tables["segments"]).filter(pl.col("run_id") == 0)["rtt_ns"].drop_nulls()
    assert [round(float(row["ms"]) * 1e6) for row in samples] == measured.to_list()
    assert float(layer_rows(spec, "SRTT, tcp_info")[0]["ms"]) == RTT_NS / 1e6


def test_throughput_integrates_to_the_bytes_transferred(tables: Tables) -> None:
    spec = charts.throughput(tables).to_dict()
    for label, octets in (
        ("sent, with retransmissions", (SEGMENTS + len(LOST)) * MSS),
        ("goodput (acknowledged in order)", SEGMENTS * MSS),
    ):
        rows = [(float(row["t"]), float(row["mbps"])) for row in layer_rows(spec, label)]
        carried = sum(rate * (after - t) * 1e6 / 8 for (t, rate), (after, _) in pairwise(rows))
        first_ack_bytes = MSS if label.startswith("goodput") else 0
        assert carried == pytest.approx(octets - first_ack_bytes, abs=1)


def test_throughput_of_a_log_unwraps_snd_una() -> None:
    rows = [
        required(
            "instruments",
            flow_id=1,
            t_ns=START_NS + n * 10**9,
            source="web100",
            snd_una=(2**32 - 5000 + n * 1000) % 2**32,
        )
        for n in range(11)
    ]
    spec = charts.throughput({"instruments": table_from_rows("instruments", rows)}).to_dict()
    assert spec["title"]["subtitle"] == ["TCP payload per bin of 1 s."]
    goodput = layer_rows(spec, "goodput (acknowledged in order)")
    bins = [(float(row["t"]), float(row["mbps"])) for row in goodput]
    assert sum(rate * (after - t) * 1e6 / 8 for (t, rate), (after, _) in pairwise(bins)) == pytest.approx(10_000)


@pytest.mark.parametrize(("span_s", "rows", "width"), [(60, 9000, 0.5), (60, 31, 2), (10, 11, 1), (0.001, 2, 0.001)])
def test_bin_width(span_s: float, rows: int, width: float) -> None:
    assert bin_width_s(span_s, rows) == width


def test_short_last_bin_is_merged_into_the_previous_one(tables: Tables) -> None:
    spec = charts.throughput(tables, View(from_s=0, to_s=2.01)).to_dict()
    starts = [float(row["t"]) for row in layer_rows(spec, "sent, with retransmissions")]
    width = starts[1] - starts[0]
    assert width / 2 <= starts[-1] - starts[-2] <= 1.5 * width + 1e-9
    assert starts[-1] == 2.01


def test_legend_lists_only_drawn_series(tables: Tables) -> None:
    segments = pl.DataFrame(tables["segments"]).filter(~pl.col("retransmission")).with_columns(wnd_bytes=None)
    spec = charts.time_sequence({"segments": segments, "flows": tables["flows"]}).to_dict()
    named = spec["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert named == ["data segment", "cumulative ACK", "SACK block"]
    assert len(spec["layer"]) == 3


def test_losses_are_drawn_by_cause_with_evidence(tables: Tables) -> None:
    spec = charts.losses(tables).to_dict()
    drawn = [layer for layer in spec["layer"] if "y" in layer["encoding"]]
    lanes = drawn[0]["encoding"]["y"]["scale"]["domain"]
    assert lanes[:3] == ["lost to the channel (2)", "lost to a queue (1)", "lost, cause unknown (1)"]
    assert "retransmission (4)" in lanes
    assert "outage (1)" in lanes
    bars, ticks = (rows_of(spec, layer["data"]["name"]) for layer in drawn)
    assert [(row["lane"], float(row["t"]), float(row["t_end"])) for row in bars] == [("outage (1)", 1.5, 2.0)]
    assert "hole at 23" in {row["evidence"] for row in ticks}


def test_what_if_draws_runs_and_findings_unchanged(tables: Tables) -> None:
    spec = charts.what_if_goodput(tables).to_dict()
    assert spec["layer"][0]["encoding"]["y"]["scale"]["domain"] == [
        "reno", "reno, through gateway", "cubic", "cubic, through gateway",
    ]  # fmt: skip
    assert len(layer_rows(spec, charts.comparison.SEED)) == 12
    assert [float(row["mbps"]) for row in layer_rows(spec, charts.comparison.REPLAYED)] == [0.15] * 4
    means = layer_rows(spec, charts.comparison.MEAN)
    assert {(row["mbps"], row["low"], row["high"]) for row in means} == {("0.142", "0.141", "0.143")}
    difference = charts.what_if_difference(tables).to_dict()
    drawn = layer_rows(difference, charts.comparison.PAIRED)
    assert [row["subject"] for row in drawn] == ["reno, through gateway", "cubic", "cubic, through gateway"]
    assert difference["title"]["text"] == "Difference in goodput from reno, same channel and seed"
    assert "from reno for the same channel" in difference["description"]


def test_a_prediction_for_one_flight_is_not_called_a_mean(tables: Tables) -> None:
    said = "reno: one flight would show 0.14 Mbit/s, with 95 % probability 0.05 Mbit/s to 0.4 Mbit/s."
    rows = [finding("what_if", "reno", "goodput", value=1.4e5, low=5e4, high=4e5, unit="bit/s", text=said)]
    spec = charts.what_if_goodput({**tables, "findings": table_from_rows("findings", rows)}).to_dict()
    (row,) = layer_rows(spec, charts.comparison.FORECAST)
    assert (row["mbps"], row["low"], row["high"]) == ("0.14", "0.05", "0.4")
    assert charts.comparison.MEAN not in spec["layer"][0]["encoding"]["color"]["scale"]["domain"]


def test_runs_over_a_channel_model_have_a_separate_legend() -> None:
    runs = [run_row(n, "reno", "none", channel_mode="model", seed=n, goodput_bps=1e5 * n) for n in (1, 2)]
    tables = {"runs": table_from_rows("runs", runs)}
    spec = charts.what_if_goodput(tables).to_dict()
    assert len(layer_rows(spec, "one seed")) == 2
    assert "Captured" not in spec["description"]
    delay = charts.goodput_and_delay(tables).to_dict()
    assert "One mark per run. Up and left is better." in delay["title"]["subtitle"]
    assert "reno 0.10 Mbit/s at 250 ms; reno 0.20 Mbit/s at 250 ms" in delay["description"]
    encoding = delay["layer"][0]["encoding"]
    assert (encoding["x"]["scale"]["zero"], encoding["y"]["scale"]["zero"]) == (True, False)


def test_self_check_draws_the_best_matching_candidate_over_the_capture(tables: Tables) -> None:
    spec = charts.self_check_sequence(tables).to_dict()
    captured, replayed = layer_rows(spec, "captured"), layer_rows(spec, "replayed")
    assert captured == replayed
    assert float(captured[0]["t"]) == 0
    assert spec["title"]["text"].endswith("(reno)")
    under, over = (layer["mark"]["strokeWidth"] for layer in spec["layer"])
    assert under > 3 * over
    other = dict(tables)
    reordered = [
        finding("self_check", "cubic", "goodput", value=1.0),
        finding("self_check", "reno", "goodput", value=1.0),
    ]
    other["findings"] = table_from_rows("findings", reordered)
    other["instruments"] = table_from_rows(
        "instruments", [*flow_instruments("tcp_info"), *flow_instruments("replay", 2, start_ns=0)]
    )
    assert charts.self_check_cwnd(other).to_dict()["title"]["text"].endswith("(cubic)")


def test_what_if_cwnd_has_a_panel_per_subject(tables: Tables) -> None:
    spec = charts.what_if_cwnd(tables).to_dict()
    assert [panel["title"]["text"] for panel in spec["concat"]] == [
        "reno", "reno, through gateway", "cubic", "cubic, through gateway",
    ]  # fmt: skip


def test_goodput_is_drawn_against_the_delay_from_end_to_end(tables: Tables) -> None:
    spec = charts.goodput_and_delay(tables).to_dict()
    assert spec["layer"][-1]["encoding"]["x"]["axis"]["title"] == "95th percentile of the one-way delay [ms]"
    assert {row["ms"] for row in rows_of(spec, spec["layer"][-1]["data"]["name"])} == {"250.0"}
    before = {"runs": table_from_rows("runs", [run_row(1, "reno", "none", one_way_delay_p95_ns=None)])}
    with pytest.raises(ReportError, match="earlier version"):
        charts.goodput_and_delay(before)


def test_utc_axis() -> None:
    rows = flow_segments()
    tables = {"segments": table_from_rows("segments", rows), "flows": table_from_rows("flows", [flow_row(rows)])}
    spec = charts.time_sequence(tables, View(utc=True)).to_dict()
    encoding = spec["layer"][0]["encoding"]["x"]
    assert encoding["type"] == "temporal"
    assert encoding["scale"]["type"] == "utc"
    assert encoding["scale"]["domainMin"] == START_NS / 1e6
    assert float(layer_rows(spec, "data segment")[0]["t"]) == (START_NS + RTT_NS) / 1e6


@pytest.mark.parametrize("utc", [False, True])
def test_a_view_may_end_at_a_whole_second(tables: Tables, utc: bool) -> None:
    whole = charts.throughput(tables, View(from_s=1, to_s=3, utc=utc)).to_dict()
    assert whole["datasets"] == charts.throughput(tables, View(from_s=1.0, to_s=3.0, utc=utc)).to_dict()["datasets"]


def test_view_limits_the_time_interval(tables: Tables) -> None:
    spec = charts.time_sequence(tables, View(from_s=1.0, to_s=1.4)).to_dict()
    sent = layer_rows(spec, "data segment")
    assert len(sent) == PER_ROUND
    assert all(1.0 <= float(row["t"]) <= 1.4 for row in sent)


def test_charts_accept_polars_frames_and_lazy_frames(tables: Tables) -> None:
    eager = {name: pl.DataFrame(table) for name, table in tables.items()}
    lazy = {name: frame.lazy() for name, frame in eager.items()}
    spec = charts.time_sequence(tables).to_dict()
    assert charts.time_sequence(eager).to_dict()["datasets"] == spec["datasets"]
    assert charts.time_sequence(lazy).to_dict()["datasets"] == spec["datasets"]


def test_legs_of_a_split_connection_are_not_mixed() -> None:
    first, second = flow_segments(1, start_ns=0), flow_segments(1, start_ns=0)
    second_leg = [{**row, "leg": 1, "t_ns": int(str(row["t_ns"])) + 100} for row in second]
    tables = {"segments": table_from_rows("segments", [*first, *second_leg])}
    for leg, start in ((0, 0.5), (1, 0.5000001)):
        spec = charts.time_sequence(tables, View(run_id=1, leg=leg)).to_dict()
        sent = layer_rows(spec, "data segment")
        assert len(sent) == SEGMENTS
        assert float(sent[0]["t"]) == pytest.approx(start, abs=1e-6)


def test_flow_with_data_from_b_to_a_is_drawn_in_the_data_direction() -> None:
    rows = flow_segments()
    for row in rows:
        row["direction"] = "b2a" if row["direction"] == "a2b" else "a2b"
    flow = {**flow_row(rows), "data_direction": "b2a"}
    reverse = {"segments": table_from_rows("segments", rows), "flows": table_from_rows("flows", [flow])}
    spec = charts.time_sequence(reverse).to_dict()
    assert len(layer_rows(spec, "data segment")) == SEGMENTS


def one(**given: object) -> dict[str, object]:
    return required("segments", flow_id=1, record=1, t_ns=START_NS, **given)


@pytest.mark.parametrize(
    "rows",
    [
        [one(direction="a2b", flags=2)],
        [one(direction="a2b", payload_bytes=1, seq=1)],
        [one(direction="a2b", payload_bytes=5, seq=1), one(direction="b2a", ack=6, flags=16, wnd_bytes=0, rtt_ns=0)],
        [one(direction="b2a", flags=4), one(direction="a2b", payload_bytes=1, seq=-5_000_000_000)],
        [
            {**one(direction="a2b", payload_bytes=9, seq=2**40), "t_ns": START_NS - 5},
            one(direction="b2a", ack=2**40 + 9),
        ],
    ],
    ids=["syn", "one octet", "RTT of zero", "reset", "clock backwards"],
)
@pytest.mark.parametrize("with_flow", [True, False])
def test_tiny_flows_are_drawn_or_raise_report_error(rows: list[dict[str, object]], with_flow: bool) -> None:
    tables = {"segments": table_from_rows("segments", rows)}
    if with_flow:
        flow = {**flow_row(rows), "start_ns": START_NS, "end_ns": START_NS}
        tables["flows"] = table_from_rows("flows", [flow])
    for name in ("time_sequence", "cwnd", "rtt", "throughput", "losses"):
        try:
            spec = ALL[name](tables).to_dict()
        except ReportError:
            assert name in {"time_sequence", "cwnd", "rtt", "throughput"}, name
            continue
        svg = vl_convert.vegalite_to_svg(spec, vl_version=vega_lite_version())
        assert "NaN" not in svg, name


@pytest.mark.parametrize("name", ALL)
def test_missing_data_raises_one_sentence(name: str) -> None:
    with pytest.raises(ReportError, match=r"^[A-Z].*\.$"):
        ALL[name]({})


@pytest.mark.parametrize(
    ("name", "rows", "reason"),
    [
        ("time_sequence", {"instruments": flow_instruments("tcp_info")}, "No data segment of"),
        ("losses", {"instruments": flow_instruments("tcp_info")}, "packets were not captured"),
        ("cwnd", {"events": flow_events()}, "congestion window is not known"),
        ("what_if_difference", {"runs": [run_row(1, "reno", "none")]}, "two combinations of variant and proxy"),
        ("what_if_cwnd", {"runs": [run_row(1, "reno", "none")]}, "recorded its congestion window"),
        ("self_check_cwnd", {"runs": [run_row(1, "reno", "none", purpose="self_check")]}, "recorded no instruments"),
    ],
)
def test_missing_chart_states_the_reason(name: str, rows: dict[str, Any], reason: str) -> None:
    with pytest.raises(ReportError, match=reason):
        ALL[name]({table: table_from_rows(table, given) for table, given in rows.items()})
