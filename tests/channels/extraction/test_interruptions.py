"""Outages and path changes: their times, their cost, and what the capture does not show."""

from __future__ import annotations

from typing import Any

from hindflight.channels.extraction.interruptions import NAMES, interruptions
from hindflight.toolkit.schema import table_from_rows
from tests.reports.conftest import required

SECOND = 1_000_000_000
STEP = 10_000_000
OCTETS = 1000


def interval(start_s: float, end_s: float, *, lost: bool = False, delay_ms: float = 50) -> dict[str, Any]:
    return required(
        "channel", kind="interval", direction="a2b", t_ns=int(start_s * SECOND), end_ns=int(end_s * SECOND), lost=lost,
        rate_bps=None if lost else 800e3, delay_ns=None if lost else int(delay_ms * 1e6),
    )  # fmt: skip


def steady(*, stalled: tuple[float, float], resumed: bool = True) -> list[dict[str, Any]]:
    """Return a flow of 800 kbit/s for 20 s, acknowledged after 100 ms, that does nothing from one time to another."""
    rows, seq = [], 1
    for step in range(2000):
        t = step * STEP
        if stalled[0] * SECOND <= t < stalled[1] * SECOND or (t >= stalled[1] * SECOND and not resumed):
            continue
        given = {"run_id": 0, "flow_id": 1, "seq": seq, "payload_bytes": OCTETS}
        rows.append(required("segments", **given, t_ns=t, direction="a2b", ack=1))
        seq += OCTETS
        back = {"run_id": 0, "flow_id": 1, "seq": 1, "ack": seq, "rtt_ns": 100_000_000}
        rows.append(required("segments", **back, t_ns=t + 100_000_000, direction="b2a"))
    rows.sort(key=lambda row: int(str(row["t_ns"])))
    return [{**row, "record": record} for record, row in enumerate(rows, 1)]


def found(channel: list[dict[str, Any]], segments: list[dict[str, Any]]) -> list[Any]:
    return interruptions(table_from_rows("channel", channel), table_from_rows("segments", segments), "a2b")


def test_an_outage_has_its_stall_and_its_recovery() -> None:
    channel = [interval(0, 20), interval(8, 9, lost=True), interval(9, 10, lost=True)]
    (outage,) = found(channel, steady(stalled=(7.9, 10.5)))
    assert (outage.kind, outage.start_ns, outage.end_ns) == (NAMES["outage"], 8 * SECOND, 10 * SECOND)
    assert outage.first_new_data_ns == 600_000_000, "sent at 10.5 s, acknowledged 100 ms later"
    assert (outage.rtt_before_ns, outage.rtt_after_ns) == (1e8, 1e8)
    assert abs(outage.goodput_before_bps / 800e3 - 1) < 0.02
    assert abs(outage.goodput_after_bps / 800e3 - 1) < 0.02
    assert 400_000_000 <= outage.back_ns <= 700_000_000
    assert outage.last_record < outage.next_record


def test_a_flow_that_never_resumes_has_no_recovery() -> None:
    (outage,) = found([interval(0, 20), interval(8, 10, lost=True)], steady(stalled=(8, 10), resumed=False))
    assert outage.goodput_before_bps > 0
    assert (outage.first_new_data_ns, outage.back_ns, outage.next_record) == (None, None, None)


def test_a_step_of_delay_is_a_path_change_and_joins_the_outage_that_it_falls_into() -> None:
    apart = [interval(0, 5), interval(5, 20, delay_ms=100), interval(12, 13, lost=True)]
    assert [each.kind for each in found(apart, steady(stalled=(12, 13)))] == [NAMES["change"], NAMES["outage"]]
    joined = [interval(0, 12), interval(12, 20, delay_ms=100), interval(12, 13, lost=True)]
    assert [each.kind for each in found(joined, steady(stalled=(12, 13)))] == [NAMES["both"]]
    same = [interval(0, 12), interval(12, 20, delay_ms=50.2)]
    assert found(same, steady(stalled=(21, 22))) == []
