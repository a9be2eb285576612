"""Outcome and self-check on tables small enough to count by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from hindflight.replay.experiment.selfcheck import describe_self_check, rank_candidates
from hindflight.replay.outcome import Outcome, cwnd_error, measure, transfer_span
from hindflight.toolkit.schema import TABLES, empty_table, table_from_rows

DEFAULTS = {
    "run_id": 0,
    "flow_id": 1,
    "leg": 0,
    "flags": 16,
    "window": 0,
    "seq_raw": 0,
    "ack_raw": 0,
    "sack_permitted": False,
    "sack": [],
    "ip_version": 4,
    "ip_bytes": 1500,
    "ttl": 64,
    "dscp_ecn": 0,
    "frame_bytes": 1514,
    "captured_bytes": 100,
    "dup_ack": False,
    "segments_n": 1,
    "ip_checksum": "not_checked",
    "tcp_checksum": "not_checked",
    "flight_bytes": 0,
}


def _segments(rows: list[tuple[int, str, int, int, int, bool]]) -> pa.Table:
    return table_from_rows(
        "segments",
        [
            {
                **DEFAULTS,
                "record": i + 1,
                "t_ns": t,
                "direction": d,
                "seq": seq,
                "payload_bytes": n,
                "ack": ack,
                "retransmission": again,
            }
            for i, (t, d, seq, n, ack, again) in enumerate(rows)
        ],
    )


LADDER = _segments(
    [
        (100, "a2b", 1, 1000, 1, False),
        (110, "a2b", 1001, 1000, 1, False),
        (200, "b2a", 1, 0, 1001, False),
        (210, "a2b", 1001, 1000, 1, True),
        (220, "a2b", 2001, 1000, 1, False),
        (300, "b2a", 1, 0, 3001, False),
        (999, "b2a", 1, 0, 3001, False),
    ]
)


def test_counts_what_happened_up_to_the_end() -> None:
    instruments = table_from_rows(
        "instruments",
        [
            {"run_id": 0, "flow_id": 1, "leg": 0, "t_ns": t, "source": s, "phase": "unknown", "cwnd_bytes": c}
            for t, s, c in ((105, "inferred", 1000), (100, "tcp_info", 2000), (215, "tcp_info", 1500))
        ],
    )
    assert transfer_span(LADDER, "a2b") == (100, 220)
    outcome = measure(LADDER, empty_table("events"), instruments, "a2b", 150)
    assert outcome is not None
    assert (outcome.delivered_bytes, outcome.data_segments, outcome.retransmissions, outcome.rtos) == (1000, 4, 1, 0)
    assert outcome.cwnd_source == "tcp_info"
    assert outcome.cwnd_bytes.tolist() == [2000, 2000, 2000, 1500]
    assert outcome.goodput_bps == pytest.approx(1000 * 8 / 150e-9)
    whole = measure(LADDER, empty_table("events"), empty_table("instruments"), "a2b", 10_000)
    assert whole is not None
    assert whole.delivered_bytes == 3000
    assert whole.cwnd_source == "none"


def test_without_data_the_outcome_is_none() -> None:
    assert measure(LADDER, empty_table("events"), empty_table("instruments"), "b2a", 100) is None


def _outcome(goodput_factor: float = 1.0, cwnd: float = 10.0, retransmissions: int = 100) -> Outcome:
    return Outcome(0, 8_000_000_000, int(1e6 * goodput_factor), 1000, retransmissions, 2, np.full(50, cwnd), "replay")


def test_cwnd_error_is_relative_to_the_second_and_ignores_what_is_unknown() -> None:
    a, b = _outcome(cwnd=11.0), _outcome(cwnd=10.0)
    assert cwnd_error(a, b) == pytest.approx(0.1)
    unknown = dataclasses.replace(b, cwnd_bytes=np.full(50, np.nan))
    assert cwnd_error(a, unknown) is None


def test_the_nearest_candidate_comes_first_and_is_judged() -> None:
    captured = _outcome()
    ranked = rank_candidates(captured, [("cubic", _outcome(1.3, 14.0)), ("sack", _outcome(0.98, 10.1))])
    assert [c.variant for c in ranked] == ["sack", "cubic"]
    rows = describe_self_check(captured, ranked, "the rate")
    differences = {row["subject"]: row for row in rows if row["metric"] == "goodput_difference"}
    assert list(differences) == ["sack", "cubic"]
    assert [row["verdict"] for row in differences.values()] == ["pass", "fail"]
    assert differences["sack"]["value"] == pytest.approx(-2.0)
    assert "best match of 2" in differences["sack"]["text"]
    assert "can be compared with the capture" in differences["sack"]["text"]
    assert [row["value"] for row in rows if row["subject"] == "capture"] == [1e6, 100, 2]
    table_from_rows("findings", rows)
    (far,) = [r for r in describe_self_check(captured, ranked[1:], "the rate is wrong") if r["text"]]
    assert "one another only" in far["text"]
    assert "the rate is wrong" in far["text"]


def test_where_no_candidate_matches_the_most_likely_comes_first() -> None:
    captured, likely = _outcome(), {"reno": 0.7, "cubic": 0.2}
    missed = [("cubic", _outcome(4.0)), ("reno", _outcome(5.0)), ("vegas", _outcome(3.0))]
    ranked = rank_candidates(captured, missed, likely)
    assert [c.variant for c in ranked] == ["reno", "cubic", "vegas"]
    (said,) = [row["text"] for row in describe_self_check(captured, ranked, "the rate") if row["text"]]
    assert "the most likely of 3 variants tried, none of which matches" in said
    assert [c.variant for c in rank_candidates(captured, missed)] == ["vegas", "cubic", "reno"]
    matched = rank_candidates(captured, [*missed, ("bic", _outcome(1.04))], likely)
    assert [c.variant for c in matched] == ["bic", "vegas", "cubic", "reno"]


def test_retransmissions_may_differ_by_a_tenth_or_ten() -> None:
    captured = _outcome(retransmissions=200)
    near, far = (rank_candidates(captured, [("x", _outcome(retransmissions=n))])[0] for n in (220, 221))
    assert near.retransmissions_agree
    assert not far.retransmissions_agree
    few = _outcome(retransmissions=3)
    near, far = (rank_candidates(few, [("x", _outcome(retransmissions=n))])[0] for n in (13, 14))
    assert near.retransmissions_agree
    assert not far.retransmissions_agree


def test_every_table_of_the_schema_can_be_empty() -> None:
    assert all(empty_table(name).num_rows == 0 for name in TABLES)
