from __future__ import annotations

import html
import json
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from hindflight.replay.experiment.compare import compare_runs
from hindflight.reports import bundle
from hindflight.reports.document import ReportMeta, write_report
from hindflight.reports.findings import heading, replayed_runs
from hindflight.reports.frames import captured_flows
from hindflight.reports.sections import FLOWS_SHOWN, Figure, Notice, Part, Section, Source, sections
from hindflight.reports.texts import NOT_TO_BE_RELIED_ON, SHARED_DIFFERENTLY
from hindflight.toolkit.errors import HindflightError, MachineError
from hindflight.toolkit.schema import table_from_rows
from tests.reports.conftest import (
    Tables,
    finding,
    flow_instruments,
    flow_row,
    flow_segments,
    required,
    run_row,
    whole_tables,
)

META = ReportMeta(
    "GEO & <co>",
    "2026-11-21 10:40 UTC",
    {
        "format": "hindflight workspace",
        "inputs": [{"input_id": 0, "name": "snd.pcap.xz", "sha256": "ab" * 32, "size_bytes": 206_100}],
        "versions": {"hindflight": "0.1.0"},
        "commands": [{"command": "hindflight whatif snd.pcap.xz", "time_utc": "2026-11-21T10:39:00Z"}],
        "parameters": [{"name": "queue", "value": "201 pkts", "default": "100 pkts"}],
        "tables": {"flows": [{"file": "flows-000001.parquet"}]},
    },
)
SECTIONS = [
    "Findings", "Outages and handovers", "How far to trust a replay", "What happened", "What if", "What is not known",
    "How to read this", "Provenance",
]  # fmt: skip


class Outline(HTMLParser):
    """Headings, text, scripts, ids and loading attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.loads: list[tuple[str, str, str]] = []
        self.scripts: list[dict[str, str | None]] = []
        self.ids: list[str] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        values = dict(attrs)
        if tag == "script":
            self.scripts.append(values)
        if "id" in values:
            self.ids.append(str(values["id"]))
        self.loads += [(tag, k, str(v)) for k, v in attrs if k in {"src", "href", "data", "action", "srcset", "poster"}]
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in {"script", "style"}:
            return
        self.words.append(data)
        if self._open and re.fullmatch(r"h[1-6]", self._open[-1]):
            tag, text = self.headings[-1]
            self.headings[-1] = (tag, text + data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def written(tables: dict[str, Any], folder: Path, meta: ReportMeta = META) -> str:
    return write_report(tables, meta, folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(whole_tables(), tmp_path_factory.mktemp("report"))


def store(report: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="charts">(.*?)</script>', report, re.DOTALL)
    assert match
    loaded: dict[str, Any] = json.loads(match[1])
    return loaded


def test_sections_are_in_order(report: str) -> None:
    outline = Outline(report)
    assert outline.headings[0] == ("h1", "GEO & <co>")
    assert [text for tag, text in outline.headings if tag == "h2"] == SECTIONS
    assert len(outline.ids) == len(set(outline.ids))
    inside = re.findall(r'href="#([^"]+)"', report.split("<script", 1)[0])
    assert set(inside) <= set(outline.ids)
    assert len(inside) >= len(SECTIONS) + 1


def test_headings_never_skip_a_level(report: str) -> None:
    levels = [int(tag[1]) for tag, _ in Outline(report).headings]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_report_shows_sentences_and_numbers(report: str) -> None:
    text = Outline(report).text
    assert "A sender moved 120 kB in 6.5 s." in text
    assert "The channel took two segments." in text
    assert "500.0 ms 490.0 to 510.0 ms" in text
    assert "reno reproduces it." in text
    assert "cubic, through gateway" in text
    assert "142.0 kbit/s 141.0 to 143.0 kbit/s" in text
    assert "hole at 23" in text
    assert "2026-11-21 10:40 UTC" in text


def test_self_check_lists_each_candidate_with_its_verdict(report: str) -> None:
    rows = re.findall(r"<tr>\s*<th scope=\"row\">(.*?)</tr>", report, re.DOTALL)
    plain = [re.sub(r"<[^>]+>|\s+", " ", row).strip() for row in rows]
    assert any(re.match(r"capture\s+147\.7 kbit/s$", row) for row in plain)
    assert any(re.match(r"reno\s+150\.0 kbit/s\s+pass$", row) for row in plain)
    assert any(re.match(r"cubic\s+190\.0 kbit/s\s+fail$", row) for row in plain)


@pytest.mark.parametrize(
    ("alone", "with_others", "warning"),
    [
        ("pass", None, None),
        ("pass", "pass", None),
        ("pass", "fail", SHARED_DIFFERENTLY),
        ("fail", "pass", NOT_TO_BE_RELIED_ON),
        ("fail", "fail", NOT_TO_BE_RELIED_ON),
    ],
)
def test_a_self_check_that_failed_warns_before_the_what_if_results(
    tables: Tables, alone: str, with_others: str | None, warning: str | None
) -> None:
    said = [finding("self_check", "reno", "goodput_difference", value=1.0, unit="%", verdict=alone)]
    if with_others is not None:
        metric = "goodput_difference_others_as_tcp"
        said.append(finding("self_check", "reno", metric, value=9.0, unit="%", verdict=with_others))
    # A candidate that matches less says nothing about the best one.
    said.append(finding("self_check", "cubic", "goodput_difference", value=40.0, unit="%", verdict="fail"))
    rows = [*said, *(row for row in tables["findings"].to_pylist() if row["section"] == "what_if")]
    shown = sections(Source({**tables, "findings": table_from_rows("findings", rows)}), {})
    for key in ("self_check", "what_if"):
        (section,) = [section for section in shown if section.key == key]
        notices = [part.warning for part in section.parts if isinstance(part, Notice)]
        assert notices == ([] if warning is None else [warning])


def test_page_without_scripts_has_a_notice(report: str) -> None:
    assert re.search(r"<noscript><p[^>]*>.*Scripts are switched off.*</p></noscript>", report)


def test_only_judged_findings_show_a_verdict(tmp_path: Path) -> None:
    said = [
        finding("what_if", name, "goodput_gain", value=value, low=value - 1, high=value + 1, unit="%", verdict=verdict)
        for name, value, verdict in (("cubic", 94.8, "info"), ("sack", 0.2, "unknown"))
    ]
    said.append(finding("what_if", "reno", "goodput", value=8e3, low=7e3, high=9e3, unit="bit/s"))
    said.append(finding("what_if", "reno", "interval_deviation", value=0.3, low=0.3, high=0.1))
    text = Outline(written({"findings": table_from_rows("findings", said)}, tmp_path)).text
    assert "cubic 94.8 % more 93.8 to 95.8 %" in text
    assert "sack 0.20 % undecided −0.80 to 1.20 %" in text
    assert "nterval deviation" not in text
    assert not re.search(r"kbit/s (info|more|less|undecided|unknown)", text)


@pytest.mark.parametrize(
    ("factor", "seeds", "said"), [(1.5, 8, "more"), (0.5, 8, "less"), (1.0, 8, "undecided"), (1.5, 2, "undecided")]
)
def test_gain_is_marked_by_the_sign_of_its_interval(tmp_path: Path, factor: float, seeds: int, said: str) -> None:
    runs = [
        run_row(1, variant, "none", channel_mode="resampled", seed=seed, goodput_bps=goodput_bps)
        for seed in range(seeds)
        for variant, goodput_bps in (("linux-reno", 1e6), ("cubic", 1e6 * factor + (-1) ** seed * 1e4))
    ]
    rows = compare_runs(runs, ("linux-reno", "none"))
    page = written({"findings": table_from_rows("findings", rows)}, tmp_path)
    assert re.findall(r'<span class="verdict [a-z]+">([a-z]+)</span>', page) == [said]


def test_gain_of_reset_connections_is_undecided(tmp_path: Path) -> None:
    runs = [
        run_row(1, variant, "none", channel_mode="model", seed=seed, goodput_bps=goodput_bps + seed, reset_ns=reset_ns)
        for seed in range(8)
        for variant, goodput_bps, reset_ns in (("reno", 1e6, None), ("cubic", 2e6, 12_200_000_000))
    ]
    page = written({"findings": table_from_rows("findings", compare_runs(runs, ("reno", "none")))}, tmp_path)
    assert re.findall(r'<span class="verdict [a-z]+">([a-z]+)</span>', page) == ["undecided"]
    assert "cubic: the connection was reset in 8 of 8 runs, the first after 12.2 s" in page


def test_section_of_unknowns_lists_every_unknown(report: str) -> None:
    part = report[report.index('<h2 id="unknown">') : report.index('<h2 id="how_to_read">')]
    assert "Losses among the ACKs cannot be seen from here." in part
    assert "its limit is a lower bound" in part
    assert "the record ends early; it was left out" in part


def test_provenance_lists_inputs_versions_commands_and_runs(report: str) -> None:
    part = Outline(report[report.index('<h2 id="provenance">') : report.index('<script type="application/json"')]).text
    for said in ("ab" * 32, "206.1 kB", "hindflight whatif snd.pcap.xz", "0.1.0", "100 pkts", "resampled", "1 to 3"):
        assert said in part
    assert "flows-000001" not in part


def test_page_loads_nothing(report: str) -> None:
    outline = Outline(report)
    assert outline.loads
    assert all(value.startswith("#") for _, _, value in outline.loads), outline.loads
    before = report[: report.index('<script type="application/json"')]
    assert "url(" not in before
    assert "@import" not in before
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', report)
    assert policy
    directives = html.unescape(policy[1])
    assert directives.startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in directives


def test_page_contains_each_script_once(report: str) -> None:
    assert [script.get("type") for script in Outline(report).scripts] == ["application/json", None, None]
    assert report.count("window.vegaEmbed=") == 1


def test_charts_share_their_data_sets(report: str) -> None:
    charts = store(report)
    assert len(charts["charts"]) == 14
    assert all("datasets" not in chart["spec"] for chart in charts["charts"])
    named = set(re.findall(r'"data":\{"name":"(data-[0-9a-f]+)"', json.dumps(charts["charts"], separators=(",", ":"))))
    assert named
    assert named <= set(charts["datasets"])
    groups = [chart["group"] for chart in charts["charts"]]
    assert groups == ["self-check"] * 2 + ["flow-1"] * 8 + [""] * 4


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u2028"


def test_text_from_users_is_escaped(tmp_path: Path) -> None:
    rows = flow_segments()
    events = [required("events", flow_id=1, t_ns=rows[9]["t_ns"], kind="loss", cause="channel", evidence=HOSTILE)]
    runs = [run_row(1, HOSTILE, HOSTILE), run_row(2, "reno", "none", purpose="self_check", scenario=HOSTILE)]
    given = {
        "segments": rows,
        "flows": [{**flow_row(rows), "a_addr": HOSTILE}],
        "events": events,
        "runs": runs,
        "instruments": [*flow_instruments("replay", 1, start_ns=0), *flow_instruments("tcp_info")],
        "findings": [finding(s, HOSTILE, HOSTILE, text=HOSTILE, value=1.0, unit=HOSTILE) for s in
                     ("summary", "key_numbers", "self_check", "what_happened", "what_if", "unknown")],
        "issues": [required("issues", kind=HOSTILE, text=HOSTILE)],
    }  # fmt: skip
    tables = {name: table_from_rows(name, table) for name, table in given.items()}
    meta = ReportMeta(HOSTILE, HOSTILE, {"inputs": [{HOSTILE: HOSTILE}], "commands": [HOSTILE], HOSTILE: HOSTILE})
    report = written(tables, tmp_path, meta)
    outline = Outline(report)
    assert [script.get("type") for script in outline.scripts] == ["application/json", None, None]
    assert "<img" not in report[: report.index('<script type="application/json"')]
    assert "alert(1)" in outline.text
    raw = re.search(r'id="charts">(.*?)</script>', report, re.DOTALL)
    assert raw
    assert "<" not in raw[1]
    assert "\u2028" not in raw[1]


def test_failed_write_keeps_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: Tables) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(MachineError, match="the disk is full"):
        write_report(tables, META, target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_missing_folder_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(HindflightError, match="no such file or folder"):
        write_report({}, META, tmp_path / "nowhere" / "report.html")


def test_estimates_of_the_link_have_intervals_and_methods(tmp_path: Path) -> None:
    said = [
        finding("channel", "flow 1", "base_rtt_ns", value=4.8e8, low=4.79e8, high=4.81e8, unit="ns", text="minimum"),
        finding("channel", "flow 1", "queue_losses", value=3.0, unit="pkts", text="5 were lost."),
        finding("channel", "flow 1", "channel_losses", value=2.0, unit="pkts", text="5 were lost."),
        finding("channel", "flow 1", "one_way_delay_ns", value=2.4e8, unit="ns", verdict="unknown", text="Half of it."),
    ]
    outline = Outline(written({"findings": table_from_rows("findings", said)}, tmp_path))
    assert "Base RTT 480.0 ms 479.0 to 481.0 ms minimum" in outline.text
    assert outline.text.count("5 were lost.") == 1
    assert "One way delay: Half of it." in outline.text


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("rate_bps", "Rate"),
        ("goodput_difference", "Goodput difference"),
        ("rtos", "RTOs"),
        ("min_rtt_ns", "Min RTT"),
        ("time_utc", "Time UTC"),
        ("dup_acks_in", "Dup ACKs in"),
        ("base RTT", "Base RTT"),
        ("queue_limit_pkts", "Queue limit"),
        ("cwnd_error", "Cwnd error"),
        ("ecn_marks", "ECN marks"),
    ],
)
def test_heading_of_a_metric(metric: str, name: str) -> None:
    assert heading(metric) == name


def test_empty_tables_give_a_report(tmp_path: Path) -> None:
    report = written({}, tmp_path)
    outline = Outline(report)
    assert [text for tag, text in outline.headings if tag == "h2"] == [
        title for title in SECTIONS if title != "Outages and handovers"
    ]
    assert outline.scripts == []
    for sentence in (
        "These tables hold no flow",
        "No candidate for the captured variant was replayed",
        "No flow was captured or logged",
        "No variant was replayed, so there is nothing to compare.",
        "Every record of the inputs was decoded.",
    ):
        assert outline.text.count(sentence) == 1, sentence


def test_report_of_a_capture_without_runs(tmp_path: Path) -> None:
    rows = flow_segments()
    tables = {"segments": table_from_rows("segments", rows), "flows": table_from_rows("flows", [flow_row(rows)])}
    outline = Outline(written(tables, tmp_path))
    drawn = [text for tag, text in outline.headings if tag == "h4"]
    assert drawn == [
        "Time-sequence graph", "Round-trip time", "Throughput", "Losses and retransmissions", "Delay of each packet",
        "Application delay", "Stevens graph",
    ]  # fmt: skip
    assert "The congestion window is not known" in outline.text
    assert "Flow 1: 192.0.2.1:40000 to [2001:db8::2]:5001" in outline.text


def test_report_of_a_log(tmp_path: Path) -> None:
    tables = {"instruments": table_from_rows("instruments", flow_instruments("web100", flow_id=7))}
    outline = Outline(written(tables, tmp_path))
    assert [text for tag, text in outline.headings if tag == "h4"] == [
        "Congestion window",
        "Round-trip time",
        "Throughput",
    ]
    assert "No data segment of this flow was captured" in outline.text
    assert ("h3", "Flow 7") in outline.headings


def test_flows_with_the_most_data_are_shown_first(tmp_path: Path) -> None:
    flows, segments = [], []
    for flow_id in range(1, 7):
        rows = flow_segments(flow_id=flow_id)
        segments += rows
        flows.append({**flow_row(rows, flow_id=flow_id), "a2b_unique_bytes": 1000 * flow_id})
    tables = {"segments": table_from_rows("segments", segments), "flows": table_from_rows("flows", flows)}
    assert [view.flow_id for view in captured_flows(tables)] == [6, 5, 4, 3, 2, 1]
    outline = Outline(written(tables, tmp_path))
    shown = [text.split(":")[0] for tag, text in outline.headings if text.startswith("Flow ")]
    assert shown == ["Flow 6", "Flow 5", "Flow 4", "Flow 3"]
    assert f"The {FLOWS_SHOWN} flows with the most data are drawn; 2 more are not." in outline.text


def test_report_of_runs_over_a_channel_model(tmp_path: Path) -> None:
    runs = [run_row(1, "reno", "none", channel_mode="model"), run_row(2, "cubic", "none", channel_mode="model", seed=2)]
    tables = {
        "runs": table_from_rows("runs", runs),
        "instruments": table_from_rows("instruments", flow_instruments("replay", 1, start_ns=0)),
    }
    outline = Outline(written(tables, tmp_path))
    drawn = [text for tag, text in outline.headings if tag == "h3"]
    assert "Congestion window of each variant over the channel of the first seed" in drawn
    assert "No flow was captured or logged: these runs use a channel model." in outline.text


def model_runs(**given: object) -> Tables:
    runs = [run_row(n, variant, "none", channel_mode="model") for n, variant in enumerate(("reno", "cubic"), 1)]
    runs[1].update(given)
    rows = [finding("what_if", "reno", "goodput", value=1e5, unit="bit/s")]
    return {"runs": table_from_rows("runs", runs), "findings": table_from_rows("findings", rows)}


def test_channel_of_a_model_is_called_neither_captured_nor_resampled(tmp_path: Path) -> None:
    text = Outline(written(model_runs(), tmp_path)).text
    for untrue in ("resampled", "captured channel", "captured trace", "channel's blocks", "replayed unchanged"):
        assert untrue not in text, untrue
    for said in (
        "Mean over the seeds, with its 95 % interval",
        "Each run, over the channel of its seed",
        "No flow was captured, so there is nothing to compare a replay with.",
        "This report is not based on a capture",
        "One mark per run.",
    ):
        assert said in text, said


def test_captured_channel_is_called_captured(report: str) -> None:
    text = Outline(report).text
    for said in ("Mean over the resampled channel", "The captured channel, replayed unchanged", "channel's blocks"):
        assert said in text, said
    assert "This report is not based on a capture" not in text


def test_missing_summary_does_not_deny_findings(tmp_path: Path) -> None:
    assert "No findings were computed" not in Outline(written(model_runs(), tmp_path)).text
    assert str(sections(Source(model_runs()), {})[0].parts[0]).startswith("No summary was computed")
    assert str(sections(Source({}), {})[0].parts[0]).startswith("No findings were computed")


def test_table_of_runs_has_aqm_losses_marks_and_resets(tmp_path: Path) -> None:
    seen = {"aqm_losses": 83, "ecn_marks": 50, "ecn_reductions": 16, "reset_ns": 12_217_627_156}
    heads = ("Data packets lost: AQM", "Packets marked (ECN)", "Window decreases by ECN", "Reset after")
    text = Outline(written(model_runs(**seen), tmp_path)).text
    assert " ".join(text.split()).count(" ".join(heads[1:3])) == 1
    for said in (*heads, "83", "50", "16", "12.22 s"):
        assert said in text, said
    without = Outline(written(model_runs(), tmp_path)).text
    assert not [head for head in heads if head in without], "columns of zeros are left out"


def test_table_of_runs_has_a_seed_column_for_several_seeds() -> None:
    grid = replayed_runs(model_runs(), "what_if", "Runs")
    assert grid is not None
    assert "Seed" not in grid.head
    again = replayed_runs(model_runs(variant="reno", seed=2), "what_if", "Runs")
    assert again is not None
    assert again.head[:2] == ("Variant", "Seed")
    assert [row[1].text for row in again.rows] == ["1", "2"]


def test_section_keys(tables: Tables) -> None:
    keys = [section.key for section in sections(Source(tables), {})]
    assert keys[:2] == ["findings", "interruptions"]
    assert keys[2:] == ["self_check", "what_happened", "what_if", "unknown", "how_to_read", "provenance"]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The versions of Vega-Lite that a slow stand-in for the build was called with, with an empty cache folder."""
    versions: list[str] = []

    def slow(snippet: str, vl_version: str) -> str:
        time.sleep(0.1)
        versions.append(vl_version)
        return snippet

    monkeypatch.setattr(vl_convert, "javascript_bundle", slow)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    new_process(monkeypatch)
    return versions


def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the bundle, as a new process does."""
    monkeypatch.setattr(bundle, "_bundle", cache(bundle._bundle.__wrapped__))


def test_bundle_is_built_once_even_if_prepared_early(built: list[str]) -> None:
    bundle.prepare()
    assert bundle.vega_bundle() == "window.vegaEmbed = vegaEmbed;"
    assert built == [bundle.vega_lite_version()]


def test_bundle_is_kept_for_the_next_process(built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    bundle.vega_bundle()
    new_process(monkeypatch)
    assert bundle.vega_bundle() == "window.vegaEmbed = vegaEmbed;"
    assert len(built) == 1


def test_a_damaged_bundle_is_built_again(built: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle.vega_bundle()
    (kept,) = (tmp_path / "cache" / "hindflight").iterdir()
    kept.write_text(kept.read_text()[:-1])
    new_process(monkeypatch)
    assert bundle.vega_bundle() == "window.vegaEmbed = vegaEmbed;"
    assert len(built) == 2


def test_another_script_is_another_file(built: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle.vega_bundle()
    new_process(monkeypatch)
    monkeypatch.setattr(bundle, "_SNIPPET", "window.another = vegaEmbed;")
    assert bundle.vega_bundle() == "window.another = vegaEmbed;"
    assert len(built) == 2
    assert len(list((tmp_path / "cache" / "hindflight").iterdir())) == 2


def test_no_test_uses_the_cache_of_the_user() -> None:
    kept = bundle._kept()
    assert kept is not None
    assert not kept.is_relative_to(Path.home() / ".cache")


def test_bundle_needs_no_cache_folder(built: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert bundle.vega_bundle() == "window.vegaEmbed = vegaEmbed;"
    assert len(built) == 1


def test_table_of_losses_has_utc_times(tables: Tables, tmp_path: Path) -> None:
    report = written(tables, tmp_path, ReportMeta("UTC", utc=True))
    assert '<th scope="row">2026-11-21 07:28:58.503</th>' in report
    assert "Time [UTC]" in report


def test_no_control_character_of_a_name_is_in_the_page(tmp_path: Path) -> None:
    evil = "a\x1b[31m\x9b\u202e" + "\udce9"
    meta = ReportMeta(evil, manifest={"inputs": [{"name": evil, "sha256": "0"}]})
    text = write_report({}, meta, tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count(r"a\x1b[31m\x9b\u202e\xe9") >= 3
    for character in "\x1b\x9b\u202e":
        assert character not in text


def test_the_commands_below_a_chart_print_its_rows(tables: Tables) -> None:
    import duckdb

    def figures(parts: Sequence[Part]) -> Iterator[Figure]:
        for part in parts:
            if isinstance(part, Section):
                yield from figures(part.parts)
            elif isinstance(part, Figure):
                yield part

    present = {name: table for name, table in tables.items() if table.num_rows}
    connection = duckdb.connect()
    for name, table in present.items():
        connection.register(name, table)
    of_runs = set()
    for figure in figures(sections(Source(tables, "ws"), {})):
        assert figure.commands
        for command in figure.commands:
            _, _, workspace, sql, form = shlex.split(command)
            assert (workspace, form) == ("ws", "--csv")
            if sql.split(" FROM ")[1].split()[0] in present:
                found = connection.sql(sql)
                assert found.fetchall(), f"{figure.key}: {sql}"
                if figure.key.startswith(("what_if", "self_check")) and "run_id" in found.columns:
                    of_runs.add(figure.key)
                    assert found.filter("run_id > 0").fetchall(), f"{figure.key}: {sql}"
    assert {"what_if_goodput", "what_if_cwnd", "self_check_sequence", "self_check_cwnd"} <= of_runs
