"""The score of an inferred cwnd, against hand-made series."""

from __future__ import annotations

from pathlib import Path

import pytest

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.schema import table_from_rows
from hindflight.toolkit.score import Score, score
from hindflight.toolkit.workspace import Workspace

MS = 1_000_000
RTT_MS = 100
Row = dict[str, object]


def truth(t_ms: int, cwnd: int | None, flight: int | None = 1, limited: bool = False) -> Row:
    row: Row = {"t_ns": t_ms * MS, "source": "tcp_info", "phase": "slow_start", "cwnd_bytes": cwnd}
    return row | {"flight_bytes": flight, "srtt_ns": RTT_MS * MS, "app_limited": limited}


def estimate(t_ms: int, cwnd: int | None) -> Row:
    return {"t_ns": t_ms * MS, "source": "inferred", "phase": "slow_start", "cwnd_bytes": cwnd}


def scored(tmp_path: Path, *rows: Row) -> list[Score]:
    workspace = Workspace.create(tmp_path / "ws")
    numbered = [row | {"run_id": 0, "flow_id": row.get("flow_id", 4), "leg": 0} for row in rows]
    with workspace.transaction("test") as transaction:
        transaction.write("instruments", table_from_rows("instruments", numbered))
    return score(workspace)


def test_a_perfect_estimate(tmp_path: Path) -> None:
    steps = [(0, 10), (150, 20), (250, 30)]
    rows = [truth(t, w) for t, w in steps] + [truth(1000, 30, flight=0)] + [estimate(t, w) for t, w in steps]
    assert scored(tmp_path, *rows) == [Score(4, "tcp_info", 10, 10, 0.0, 0.0, 0.0, 1.0)]


def test_errors_are_shares_of_the_kernels_window_and_bias_has_a_sign(tmp_path: Path) -> None:
    # Ten bins; the estimate is 10 % low up to 350 ms (3 bins end there), then 20 % low.
    rows = [truth(0, 1000), truth(1000, 1000, flight=0), estimate(0, 900), estimate(350, 800)]
    (one,) = scored(tmp_path, *rows)
    assert (one.rtts, one.compared) == (10, 10)
    assert one.median_error == pytest.approx(0.2)
    assert one.bias == pytest.approx(-0.2)
    assert one.p95_error == pytest.approx(0.2)


def test_coverage_is_time_with_an_estimate(tmp_path: Path) -> None:
    rows = [truth(0, 10), truth(1000, 10, flight=0), estimate(200, 10), estimate(400, None), estimate(850, 10)]
    (one,) = scored(tmp_path, *rows)
    assert one.coverage == pytest.approx((200 + 150) / 1000)
    assert (one.rtts, one.compared) == (10, 4), "bins that end at 200, 300, 900 and 1000 ms"
    assert one.median_error == 0.0


def test_limited_time_counts_nowhere(tmp_path: Path) -> None:
    rows = [truth(0, 10), truth(250, 10, limited=True), truth(550, 10), truth(1000, 10, flight=0), estimate(0, 10)]
    (one,) = scored(tmp_path, *rows, estimate(300, 99), estimate(500, 10))
    assert (one.rtts, one.compared, one.coverage) == (7, 7, 1.0)
    assert one.p95_error == 0.0
    held_back = truth(250, 10) | {"phase": "limited"}
    again = [held_back if row["t_ns"] == 250 * MS and row["source"] == "tcp_info" else row for row in rows]
    (other,) = scored(tmp_path / "again", *again, estimate(300, 99), estimate(500, 10))
    assert other == one


def test_only_the_transfer_is_compared(tmp_path: Path) -> None:
    rows = [truth(0, 10, flight=0), truth(500, 10), truth(900, 10, flight=0), truth(5000, 10, flight=0)]
    (one,) = scored(tmp_path, *rows, estimate(500, 10), estimate(950, 99))
    assert (one.rtts, one.compared, one.p95_error, one.coverage) == (4, 4, 0.0, 1.0)


def test_no_estimate_in_time_gives_no_error_and_no_coverage(tmp_path: Path) -> None:
    rows = [truth(0, 10), truth(1000, 10, flight=0), estimate(2000, 10)]
    assert scored(tmp_path, *rows) == [Score(4, "tcp_info", 10, 0, None, None, None, 0.0)]


def test_every_flow_and_log_has_its_row(tmp_path: Path) -> None:
    rows = [truth(0, 10), truth(1000, 10), estimate(0, 10)]
    web100 = [row | {"source": "web100"} for row in rows[:2]]
    others = [row | {"flow_id": 9} for row in rows] + [truth(0, 5) | {"flow_id": 11}]
    assert [(s.flow_id, s.truth) for s in scored(tmp_path, *rows, *web100, *others)] == [
        (4, "tcp_info"),
        (4, "web100"),
        (9, "tcp_info"),
    ]


def test_without_a_pair_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(HindflightError, match="no flow here has both"):
        scored(tmp_path, truth(0, 10), estimate(0, 10) | {"flow_id": 5})
