"""How connections end, in the tables: closed by FIN both ways, given up and reset."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hindflight.replay.experiment.run import Configuration, run_configurations

FIN, RST = 1, 4
DOWN_NS = 500_000_000


def _tables(stack: dict[str, Any], outage: bool) -> dict[str, pa.Table]:
    delay = {"delay_ns": 50_000_000}
    schedule = [{"at_ns": DOWN_NS, "outage": True}] if outage else []
    config = {
        "duration_ns": 100 * 10**9,
        "path": {
            "nodes": ["a", "b"],
            "links": [{"name": "ab", "forward": {**delay, "rate_bps": 1e6, "schedule": schedule}, "reverse": delay}],
        },
        "flows": [{"name": "f", "variant": "sack", "size_bytes": 200_000, "stack": stack}],
    }
    return run_configurations([Configuration(config, seed=1, recorded=True)])


def _rows(table: pa.Table, flag: int) -> list[tuple[str, int, int]]:
    """Direction, sequence number and payload of the segments with `flag`."""
    rows = table.select(["direction", "seq", "payload_bytes", "flags"]).to_pylist()
    return [(row["direction"], row["seq"], row["payload_bytes"]) for row in rows if row["flags"] & flag]


def test_a_close_shows_as_a_fin_each_way_in_one_connection() -> None:
    tables = _tables({"close": True}, outage=False)
    last = 200_000 - 138 * 1448
    assert _rows(tables["segments"], FIN) == [("a2b", 1 + 200_000 - last, last), ("b2a", 1, 0)]
    assert tables["flows"].num_rows == 1
    assert tables["flows"]["fin"][0].as_py() == 2
    run = tables["runs"].to_pylist()[0]
    assert run["completed"]
    assert run["delivered_bytes"] == 200_000
    assert run["reset_ns"] is None
    assert "reset" not in tables["events"]["kind"].to_pylist()


def test_without_close_a_flow_ends_with_its_last_octet() -> None:
    tables = _tables({}, outage=False)
    assert _rows(tables["segments"], FIN) == []
    assert tables["runs"]["completed"][0].as_py()


@pytest.mark.parametrize(("stack", "after_s"), [({"user_timeout_ns": 4 * 10**9}, 4.0), ({"retry_limit": 2}, 14.0)])
def test_giving_up_is_an_event_with_its_time_in_the_run(stack: dict[str, Any], after_s: float) -> None:
    tables = _tables(stack, outage=True)
    run = tables["runs"].to_pylist()[0]
    resets = [row for row in tables["events"].to_pylist() if row["kind"] == "reset"]
    assert [row["t_ns"] for row in resets] == [run["reset_ns"]]
    assert not run["completed"]
    assert len(_rows(tables["segments"], RST)) == 1
    # The first timeout is due when what was under way at the break has not been acknowledged for a second or so.
    rtos = [row["t_ns"] for row in tables["events"].to_pylist() if row["kind"] == "rto"]
    assert (run["reset_ns"] - rtos[0]) / 1e9 == pytest.approx(after_s, rel=0.25)
