"""Memory of the proxies over time, flows that share a path, and the ellipses of goodput against delay."""

from __future__ import annotations

from typing import Any

import pytest
import vl_convert

from hindflight.reports import charts
from hindflight.reports.bundle import vega_lite_version
from hindflight.reports.charts import proxies
from hindflight.toolkit.errors import ReportError
from hindflight.toolkit.schema import leg_metric, table_from_rows
from tests.reports.conftest import Tables, required, run_row
from tests.reports.test_charts import rows_of


def memory(run_id: int, leg: int, held: list[tuple[int, int]]) -> list[dict[str, object]]:
    return [
        required(
            "instruments",
            run_id=run_id,
            flow_id=1,
            leg=leg,
            t_ns=second * 10**9,
            proxy_stored_bytes=stored,
            proxy_undelivered_bytes=undelivered,
        )
        for second, (stored, undelivered) in enumerate(held)
    ]


@pytest.fixture
def split() -> Tables:
    """A run without a proxy, one with one proxy, and one with two."""
    runs = [run_row(1, "reno", "none"), run_row(2, "reno", "gateway"), run_row(3, "reno", "gateway+haps")]
    rows = [*memory(2, 1, [(0, 0), (9000, 4000)]), *memory(3, 1, [(100, 50)]), *memory(3, 2, [(200, 70)])]
    return {"runs": table_from_rows("runs", runs), "instruments": table_from_rows("instruments", rows)}


def panels(spec: dict[str, Any]) -> dict[str, list[list[float]]]:
    """Return the octets of both series of each panel by its title."""
    return {
        panel["title"]["text"]: [
            [float(row["bytes"]) for row in rows_of(spec, layer["data"]["name"])] for layer in panel["layer"]
        ]
        for panel in spec["concat"]
    }


def test_each_proxy_has_a_panel_with_both_series(split: Tables) -> None:
    assert panels(charts.what_if_proxy(split).to_dict()) == {
        "reno, through gateway": [[0, 9000], [0, 4000]],
        "reno, through gateway+haps (memory of gateway)": [[100], [50]],
        "reno, through gateway+haps (memory of haps)": [[200], [70]],
    }


def test_the_memory_of_a_leg_is_that_of_the_proxy_where_it_begins() -> None:
    """A gateway that protects a link has no leg, and the names of a chain may be in another order."""
    runs = [run_row(1, "reno", "arq+gateway"), run_row(2, "reno", "haps+gateway")]
    rows = [*memory(1, 1, [(100, 50)]), *memory(2, 1, [(9000, 4000)]), *memory(2, 2, [(200, 70)])]
    legs = [("arq+gateway", 1, "gateway"), ("haps+gateway", 1, "gateway"), ("haps+gateway", 2, "haps")]
    setup = [
        required("findings", section="setup", subject=chain, metric=leg_metric(leg), text=name)
        for chain, leg, name in legs
    ]
    tables = {"runs": runs, "instruments": rows, "findings": setup}
    spec = charts.what_if_proxy({name: table_from_rows(name, found) for name, found in tables.items()}).to_dict()
    assert panels(spec) == {
        "reno, through arq+gateway": [[100], [50]],
        "reno, through haps+gateway (memory of gateway)": [[9000], [4000]],
        "reno, through haps+gateway (memory of haps)": [[200], [70]],
    }


def test_proxies_beyond_the_last_panel_are_counted(split: Tables, monkeypatch: Any) -> None:
    monkeypatch.setattr(proxies, "SHOWN", 1)
    spec = charts.what_if_proxy(split).to_dict()
    assert len(spec["concat"]) == 1
    assert "2 more proxies are not drawn." in spec["title"]["subtitle"]


def test_runs_without_a_proxy_or_its_memory_have_no_chart(split: Tables) -> None:
    with pytest.raises(ReportError, match="has a split proxy"):
        charts.what_if_proxy({"runs": table_from_rows("runs", [run_row(1, "reno", "none")])})
    with pytest.raises(ReportError, match="recorded the memory"):
        charts.what_if_proxy({"runs": split["runs"]})


def shared(subject: str, metric: str, value: float, section: str = "sharing") -> dict[str, object]:
    number = {"value": value, "low": value - 1e5, "high": value + 1e5}
    return required("findings", section=section, subject=subject, metric=metric, verdict="info", **number)


def test_flows_that_share_the_path_stand_in_the_row_of_their_subject() -> None:
    rows = [
        shared("cubic", "jain_index", 0.9, "what_if"),
        shared("cubic: flow (cubic)", "goodput", 2e6),
        shared("cubic: bulk: one (reno)", "goodput", 1e6),
    ]
    spec = charts.what_if_sharing({"findings": table_from_rows("findings", rows)}).to_dict()
    drawn = rows_of(spec, spec["layer"][-1]["data"]["name"])
    assert [(row["row"], row["name"], float(row["mbps"])) for row in drawn] == [
        ("cubic (Jain 0.900)", "flow", 2.0),
        ("cubic (Jain 0.900)", "bulk: one", 1.0),
    ]
    with pytest.raises(ReportError, match="alone on its path"):
        charts.what_if_sharing({})


def test_an_ellipse_has_the_axes_and_the_tilt_of_the_spread() -> None:
    runs = [{**run_row(1, "reno", "none"), "one_way_delay_p95_ns": 10**8, "channel_mode": "resampled"}]
    spread = {
        "goodput_mean": 2e6,
        "one_way_delay_p95": 100e6,
        "goodput_sd": 1e6,
        "one_way_delay_p95_sd": 10e6,
        "correlation": 1.0,
    }
    rows = [shared("reno", metric, value, "what_if") for metric, value in spread.items()]
    tables = {"runs": table_from_rows("runs", runs), "findings": table_from_rows("findings", rows)}
    spec = charts.goodput_and_delay(tables).to_dict()
    outline = rows_of(spec, spec["layer"][0]["data"]["name"])
    points = [(float(row["ms"]), float(row["mbps"])) for row in outline]
    assert (max(ms for ms, _ in points), min(ms for ms, _ in points)) == (110, 90)
    assert all(mbps == pytest.approx(2 + (ms - 100) / 10, abs=1e-5) for ms, mbps in points)  # A line, as both agree.
    assert "NaN" not in vl_convert.vegalite_to_svg(spec, vl_version=vega_lite_version())
