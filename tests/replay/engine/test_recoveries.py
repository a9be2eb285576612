"""Fast recoveries in `events` of a replay come from the sender's state, when it enters and leaves them, not from what a
capture would show."""

from __future__ import annotations

from typing import Any

import pytest

from hindflight.replay.experiment.run import Configuration, run_configurations

FAST_RECOVERY = "recovery"


def _run(variant: str, profile: str, per: float, stack: dict[str, Any], **link: Any) -> dict[str, list[dict[str, Any]]]:
    delay = {"delay_ns": 50_000_000}
    forward = {**delay, "rate_bps": 2e6, "loss": {"kind": "bernoulli", "per": per}, **link}
    config = {
        "duration_ns": 20 * 10**9,
        "path": {"nodes": ["a", "b"], "links": [{"name": "ab", "forward": forward, "reverse": delay}]},
        "flows": [{"name": "f", "variant": variant, "profile": profile, "stack": stack}],
    }
    tables = run_configurations([Configuration(config, seed=1, recorded=True)])
    return {name: table.to_pylist() for name, table in tables.items()}


def _spans(states: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """When the sender entered each fast recovery, and left it for another phase, a timeout or the next."""
    spans = []
    entered = rtos = 0
    start = None
    for state in states:
        over = state["phase"] != FAST_RECOVERY or state["recoveries"] > entered or state["rtos"] > rtos
        if start is not None and over:
            spans.append((start, state["t_ns"]))
            start = None
        if state["recoveries"] > entered:
            start = state["t_ns"]
        entered, rtos = state["recoveries"], state["rtos"]
    return spans if start is None else [*spans, (start, 0)]


@pytest.mark.parametrize(
    ("variant", "profile", "per", "stack"),
    [
        ("reno", "rfc", 0.05, {}),
        ("newreno", "ns2", 0.03, {}),
        ("cubic", "linux", 0.03, {"sack": False}),
        ("bbr", "linux", 0.03, {}),
        ("aerotcp", "rfc", 0.03, {}),
        ("newreno", "rfc", 0.0, {}),
    ],
)
def test_each_begins_and_ends_when_the_sender_says(
    variant: str, profile: str, per: float, stack: dict[str, Any]
) -> None:
    tables = _run(variant, profile, per, stack)
    reported = [row for row in tables["events"] if row["kind"] == "recovery"]
    states = [row for row in tables["instruments"] if row["source"] == "replay"]
    counted = tables["runs"][0]["recoveries"]
    assert len(reported) == counted == tables["flows"][0]["a2b_recoveries"]
    assert (counted > 10) == (per > 0)
    spans = _spans(states)
    assert [row["t_ns"] for row in reported] == [start for start, _ in spans]
    # The last one may be cut short by the end of the run.
    assert [row["end_ns"] for row in reported[:-1]] == [end for _, end in spans[:-1]]


def test_each_has_its_first_retransmission_and_its_outcome() -> None:
    tables = _run("sack", "rfc", 0.03, {})
    sent = {row["record"]: row for row in tables["segments"] if row["payload_bytes"]}
    reported = [row for row in tables["events"] if row["kind"] == "recovery"]
    retransmissions = sorted(r for r, row in sent.items() if row["retransmission"])
    timeouts = [row["t_ns"] for row in tables["events"] if row["kind"] == "rto"]
    for row in reported[:-1]:
        first = next(record for record in retransmissions if sent[record]["t_ns"] >= row["t_ns"])
        assert row["record"] == first
        assert row["seq_start"] == sent[first]["seq"]
        before = [segment for segment in sent.values() if segment["t_ns"] < row["t_ns"]]
        assert row["seq_end"] == max(segment["seq"] + segment["payload_bytes"] for segment in before)
        within = [r for r in retransmissions if row["t_ns"] <= sent[r]["t_ns"] < row["end_ns"]]
        how = "not reached" if row["end_ns"] in timeouts else "acknowledged"
        said = f"recovery point {row['seq_end']} {how}; {len(within)} segments retransmitted"
        assert row["evidence"] == said
    assert all(any(word in row["evidence"] for row in reported) for word in ("not reached", "acknowledged"))


def test_one_that_proved_needless_says_so() -> None:
    late = {"kind": "exponential", "spread_ns": 10_000_000}
    tables = _run("cubic", "rfc", 0.01, {}, jitter=late)
    reported = [row["evidence"] for row in tables["events"] if row["kind"] == "recovery"]
    assert sum("undone" in said for said in reported) > 5
    assert sum("acknowledged" in said for said in reported) > 5


def test_a_capture_would_have_shown_fewer() -> None:
    tables = _run("reno", "rfc", 0.05, {})
    shown = max(row["recoveries"] for row in tables["instruments"] if row["source"] == "inferred")
    assert 0 < shown < tables["runs"][0]["recoveries"]
