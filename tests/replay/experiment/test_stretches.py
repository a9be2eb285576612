"""The table of the link between its steps, from a capture with two handovers and from estimates."""

from __future__ import annotations

from hindflight.channels.estimate import Estimate, LinkStretch
from hindflight.replay.experiment.stretches import stretch_rows


def estimate(name: str, unit: str, value: float | None, *, known: bool = True) -> Estimate:
    return Estimate(name, value, None if value is None else 0.9 * value, None, unit, known, "")


def test_a_stretch_has_its_times_and_estimates_and_a_bound_is_no_value() -> None:
    estimates = (
        estimate("base_rtt_ns", "ns", 5e8),
        estimate("rate_bps", "bit/s", 2e6),
        estimate("queue_limit_pkts", "pkts", 40.0, known=False),
    )
    rows = stretch_rows([LinkStretch(10, 30, 7, estimates), LinkStretch(30, 90, 9, estimates)])
    second = {row["metric"]: row for row in rows if row["subject"] == "2"}
    assert [row["subject"] for row in rows] == ["1"] * 6 + ["2"] * 6
    assert (second["start"]["value"], second["duration"]["value"], second["packets"]["value"]) == (30, 60, 9)
    assert (second["base_rtt_ns"]["value"], second["base_rtt_ns"]["low"]) == (5e8, 4.5e8)
    assert (second["queue_limit_pkts"]["value"], second["queue_limit_pkts"]["verdict"]) == (None, "unknown")
