"""The queue of the bottleneck while variants were replayed over a captured link."""

from __future__ import annotations

from typing import Any

import pytest

from hindflight.reports import charts
from hindflight.reports.frames import View
from hindflight.toolkit.errors import ReportError
from hindflight.toolkit.schema import table_from_rows
from tests.reports.conftest import RTT_NS, START_NS, required
from tests.reports.test_charts import rows_of

RATE_BPS = 120_000.0
"""With it, 100 ms above propagation are 1,500 octets, a packet."""


def with_link(tables: Any) -> dict[str, Any]:
    """Return the tables with a link of 120 kbit/s, and 400 ms of propagation of the round trips of 500 ms."""
    given = {"hop": "path", "direction": "a2b", "lost": False, "cause": "none", "known": True}
    interval = {"t_ns": START_NS, "end_ns": START_NS + 60 * 10**9, "rate_bps": RATE_BPS, "delay_ns": 200_000_000}
    first = next(row for row in tables["segments"].to_pylist() if row["run_id"] == 0 and row["payload_bytes"])
    packet = {"t_ns": first["t_ns"], "record": first["record"], "size_bytes": 1500}
    rows = [
        required("channel", kind="interval", **given, **interval),
        required("channel", kind="packet", **given, **packet),
    ]
    return {**tables, "channel": table_from_rows("channel", rows)}


def as_run(tables: Any, run_id: int) -> dict[str, Any]:
    """Return the tables with the segments and the flow of run 1 as those of another one."""
    found = dict(tables)
    for name in ("segments", "flows"):
        rows = [row | {"run_id": run_id} if row["run_id"] == 1 else row for row in tables[name].to_pylist()]
        found[name] = table_from_rows(name, rows)
    return found


def test_each_variant_without_a_proxy_has_a_panel_of_packets(tables: Any) -> None:
    assert RTT_NS == 500_000_000
    spec = charts.what_if_queue(as_run(with_link(tables), 3)).to_dict()
    assert [panel["title"]["text"] for panel in spec["concat"]] == ["reno"], "run 7 was through a gateway"
    for layer in spec["concat"][0]["layer"]:
        held = [float(row["pkts"]) for row in rows_of(spec, layer["data"]["name"])]
        assert all(pkts == pytest.approx(1, abs=0.03) for pkts in held), "the ACKs of a round come 1 ms after its data"


def test_with_utc_the_axis_stays_that_of_the_replays(tables: Any) -> None:
    recorded = as_run(with_link(tables), 3)
    in_seconds = charts.what_if_queue(recorded).to_dict()
    assert charts.what_if_queue(recorded, View(utc=True, from_s=1.0)).to_dict()["concat"] == in_seconds["concat"]


def test_a_run_without_a_round_trip_is_named_and_the_others_drawn(tables: Any) -> None:
    recorded = as_run(with_link(tables), 3)
    first = next(row for row in recorded["segments"].to_pylist() if row["run_id"] == 3)
    lone = table_from_rows("segments", [*recorded["segments"].to_pylist(), first | {"run_id": 99, "rtt_ns": None}])
    runs = recorded["runs"].to_pylist()
    run = next(row for row in runs if row["run_id"] == 3)
    runs.append(run | {"run_id": 99, "variant": "vegas"})
    spec = charts.what_if_queue(recorded | {"segments": lone, "runs": table_from_rows("runs", runs)}).to_dict()
    assert [panel["title"]["text"] for panel in spec["concat"]] == ["reno"]
    assert "and so without a panel: vegas." in " ".join(spec["title"]["subtitle"])


def test_without_a_link_or_a_recorded_run_there_is_no_queue(tables: Any) -> None:
    for lacking in (tables, with_link(tables), as_run(with_link(tables), 7)):
        with pytest.raises(ReportError, match="what its queue held is not known"):
            charts.what_if_queue(lacking)
