"""Goodput over the cache of proxies of one comparison, and over the losses of several workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from benches.browser import program
from hindflight.reports import charts
from hindflight.reports.bundle import vega_lite_version
from hindflight.reports.sections import Figure, Source, combined, sections
from hindflight.toolkit.errors import ReportError
from hindflight.toolkit.schema import run_subject, table_from_rows
from tests.reports.accessibility import assert_drawn_and_accessible
from tests.reports.conftest import Rows, Tables, finding, run_row
from tests.reports.test_charts import rows_of

CACHES = (20, 42, 84)


def compared(setup: Rows, proxies: Sequence[str], losses: int = 10) -> Tables:
    """Return two runs of reno for each proxy: the goodput is 1 Mbit/s more with each, and `losses` of 1000 lost."""
    rows: dict[str, Rows] = {"runs": [], "findings": setup.copy()}
    for mbps, proxy in enumerate(proxies, 1):
        for seed in (1, 2):
            given = {"channel_mode": "model", "seed": seed, "segments_out": 1000, "channel_losses": losses}
            rows["runs"].append(run_row(len(rows["runs"]) + 1, "reno", proxy, **given))
        span = {"value": mbps * 1e6, "low": mbps * 1e6 - 1e5, "high": mbps * 1e6 + 1e5, "unit": "bit/s"}
        rows["findings"].append(finding("what_if", run_subject("reno", proxy), "goodput", **span))
    return {name: table_from_rows(name, table) for name, table in rows.items()}


def cached(pkts: int, policy: str = "", node: str = "T") -> Rows:
    """Return the setup of a proxy that is called like the size of its cache."""
    rows = [
        finding("setup", f"{policy}{pkts}", "node", text=node),
        finding("setup", f"{policy}{pkts}", "cache", value=float(pkts), unit="pkts", text=f"{pkts} pkts"),
    ]
    return [*rows, finding("setup", f"{policy}{pkts}", "policy", text=policy)] if policy else rows


def lossy(per: float, losses: int, *, acks: float = 0.0, fingerprint: str = "abc") -> Tables:
    """Return a workspace whose link loses data and ACKs; behind the gateway its channel lost a tenth of `losses`."""
    setup = [finding("setup", "up", "loss", text=f"model = bernoulli, per = {per}")]
    setup += [finding("setup", "up", "reverse_loss", text=f"model = bernoulli, per = {acks}")] if acks else []
    setup += [finding("setup", "scenario", "fingerprint_without_losses", text=fingerprint)] if fingerprint else []
    tables = compared(setup, ["none", "gateway"], losses)
    runs = [
        {**row, "channel_losses": losses // 10} if row["proxy"] == "gateway" else row
        for row in tables["runs"].to_pylist()
    ]
    return {**tables, "runs": table_from_rows("runs", runs)}


def points_of(spec: dict[str, Any]) -> list[dict[str, str]]:
    """Return the rows of the line."""
    return rows_of(spec, spec["layer"][0]["data"]["name"])


def figures(tables: Tables) -> dict[str, Figure]:
    what_if = next(section for section in sections(Source(tables), {}) if section.key == "what_if")
    return {part.key: part for part in what_if.parts if isinstance(part, Figure)}


def test_goodput_over_cache_has_a_point_for_each_size() -> None:
    tables = compared([row for pkts in CACHES for row in cached(pkts)], ["none", "20", "42", "84"])
    spec = figures(tables)["goodput_over_cache"].chart.to_dict()
    points = [(row["series"], float(row["x"]), float(row["mbps"]), float(row["low"])) for row in points_of(spec)]
    name = "reno, through T"
    assert points == [(name, 20, 2, 1.9), (name, 42, 3, 2.9), (name, 84, 4, 3.9)]


def test_a_chain_has_the_sum_of_its_caches() -> None:
    setup = [*cached(20), *cached(42, node="S"), *cached(84)]
    spec = charts.goodput_over_cache([compared([*setup, *cached(7, node="S"), *cached(9, node="S")],
                                              ["20+42", "84+42", "84+7"])]).to_dict()  # fmt: skip
    assert [(row["series"], float(row["x"])) for row in points_of(spec)] == [
        ("reno, through T+S", 62),
        ("reno, through T+S", 91),
        ("reno, through T+S", 126),
    ]


@pytest.mark.parametrize(
    ("setup", "proxies"),
    [
        ([*cached(20), *cached(42)], ["20", "42"]),
        ([*cached(20), *cached(42), *cached(84, "advertise = free")], ["20", "42", "advertise = free84"]),
        ([*cached(20), *cached(42), *cached(84, node="S")], ["20", "42", "84"]),
        ([*cached(20), *cached(42)], ["none", "20", "42", "without"]),
    ],
    ids=["two sizes", "another policy", "another node", "no cache"],
)
def test_proxies_that_differ_in_more_than_their_cache_are_no_sweep(setup: Rows, proxies: list[str]) -> None:
    tables = compared(setup, proxies)
    assert "goodput_over_cache" not in figures(tables)
    with pytest.raises(ReportError, match="3 sizes"):
        charts.goodput_over_cache([tables])


def test_other_policies_are_another_series_in_another_workspace_too() -> None:
    policy = "advertise = free"
    free = compared([*cached(20, policy), *cached(42, policy)], [f"{policy}20", f"{policy}42"])
    half = compared([*cached(84, "advertise = half")], ["advertise = half84"])
    with pytest.raises(ReportError):
        charts.goodput_over_cache([free, half])


def test_several_workspaces_show_goodput_over_what_the_channel_lost() -> None:
    workspaces = [lossy(per, losses) for per, losses in ((0.001, 1), (0.01, 12), (0.1, 95))]
    spec = charts.goodput_over_loss(workspaces).to_dict()
    points = [(row["series"], float(row["x"]), float(row["mbps"])) for row in points_of(spec)]
    split = "reno, through gateway"
    assert sorted(points) == [(name, x, y) for name, y in (("reno", 1), (split, 2)) for x in (0.1, 1.2, 9.5)]
    assert spec["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"
    assert "without a proxy" in str(spec["layer"][0]["encoding"]["x"]["axis"]["title"])


def test_workspaces_that_differ_in_more_than_their_losses_are_no_sweep() -> None:
    workspaces = [lossy(per, losses) for per, losses in ((0.001, 1), (0.01, 12))]
    for fingerprint in ("another", ""):
        with pytest.raises(ReportError, match="more than the loss models"):
            charts.goodput_over_loss([*workspaces, lossy(0.1, 95, fingerprint=fingerprint)])


def test_losses_of_acks_follow_those_of_data_or_make_no_sweep() -> None:
    given = ((0.001, 1), (0.01, 12), (0.1, 95))
    both = [lossy(per, losses, acks=per / 2) for per, losses in given]
    assert len(points_of(charts.goodput_over_loss(both).to_dict())) == 6
    with pytest.raises(ReportError, match="ACKs alone"):
        charts.goodput_over_loss([*both, lossy(0.1, 95, acks=0.2)])


def test_a_report_on_several_workspaces_has_the_sweep_and_its_commands() -> None:
    sources = [Source(lossy(per, losses), f"ws{losses}") for per, losses in ((0.001, 1), (0.01, 12), (0.1, 95))]
    changed = combined([("", []), ("", [])], ["a", "b", "c"], [[], [], []], sources)[0]
    (figure,) = (part for part in changed.parts if isinstance(part, Figure))
    assert figure.key == "goodput_over_loss"
    assert [command.split()[2] for command in figure.commands] == ["ws1", "ws1", "ws12", "ws12", "ws95", "ws95"]


def test_both_charts_render() -> None:
    cache = charts.goodput_over_cache([compared([row for pkts in CACHES for row in cached(pkts)], ["20", "42", "84"])])
    loss = charts.goodput_over_loss([lossy(per, losses) for per, losses in ((0.001, 1), (0.01, 12), (0.1, 95))])
    for chart, series in ((cache, 1), (loss, 2)):
        svg = vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=vega_lite_version())
        assert svg.count('aria-roledescription="point"') == 3 * series
        assert "NaN" not in svg


@pytest.mark.chromium
@pytest.mark.skipif(program() is None, reason="Chromium is not installed")
def test_both_charts_are_accessible_in_a_browser(tmp_path: Path) -> None:
    cache = charts.goodput_over_cache([compared([row for pkts in CACHES for row in cached(pkts)], ["20", "42", "84"])])
    loss = charts.goodput_over_loss([lossy(per, losses) for per, losses in ((0.001, 1), (0.01, 12), (0.1, 95))])
    assert_drawn_and_accessible({"cache": cache, "loss": loss}, tmp_path / "sweeps.html")


def test_scenarios_with_the_same_losses_are_no_sweep() -> None:
    workspaces = [lossy(0.01, losses) for losses in (9, 10, 11)]
    with pytest.raises(ReportError, match="differ in the loss models"):
        charts.goodput_over_loss(workspaces)
    assert not any(isinstance(part, Figure) for part in combined([], ["a"], [[]], [Source(workspaces[0])])[0].parts)
