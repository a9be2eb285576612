"""Orderings that the literature agrees on, over a GEO satellite with random loss: means over seeds, with a margin."""

from __future__ import annotations

from functools import cache

import pytest

from replay.run import Configuration, run_configurations

RATE_BPS = 10e6
ONE_WAY_NS = 250_000_000
PACKET_BITS = 8 * 1500
BDP_PKTS = round(2 * ONE_WAY_NS / 1e9 * RATE_BPS / PACKET_BITS)
DURATION_NS = 200_000_000_000
SEEDS = range(1, 5)


@cache
def goodput_bps(variant: str, loss: float) -> float:
    """Mean goodput of a greedy flow, profile `linux`, a queue of half the path's product."""
    forward = {
        "rate_bps": RATE_BPS,
        "delay_ns": ONE_WAY_NS,
        "queue": {"kind": "drop_tail", "limit_pkts": BDP_PKTS // 2},
        "loss": {"kind": "bernoulli", "per": loss},
    }
    reverse = {"rate_bps": RATE_BPS, "delay_ns": ONE_WAY_NS}
    link = {"name": "geo", "forward": forward, "reverse": reverse}
    flow = {"name": "flow", "variant": variant, "profile": "linux", "stack": {"receive_buffer_bytes": 1 << 26}}
    config = {"duration_ns": DURATION_NS, "path": {"nodes": ["ground", "user"], "links": [link]}, "flows": [flow]}
    runs = run_configurations([Configuration(config, seed, recorded=False) for seed in SEEDS])["runs"]
    return float(8e9 * runs["delivered_bytes"].to_numpy().mean() / DURATION_NS)


@pytest.mark.parametrize("loss", [0.001, 0.003, 0.01])
@pytest.mark.parametrize(
    ("better", "worse", "margin"),
    [
        ("hybla", "newreno", 1.5),
        ("westwood-plus", "newreno", 1.2),
        ("cubic", "linux-reno", 1.05),
        ("peach", "newreno", 2.5),
        ("scps-tp", "newreno", 3.0),
    ],
)
def test_made_for_long_paths(better: str, worse: str, margin: float, loss: float) -> None:
    assert goodput_bps(better, loss) > margin * goodput_bps(worse, loss)


@pytest.mark.parametrize("loss", [0.001, 0.01])
def test_bbr_holds_its_goodput_where_loss_is_random(loss: float) -> None:
    assert goodput_bps("bbr", loss) > 0.8 * RATE_BPS
    assert goodput_bps("linux-reno", loss) < 0.35 * RATE_BPS


def test_vegas_keeps_the_queue_short() -> None:
    def queueing_ms(variant: str) -> float:
        forward = {"rate_bps": RATE_BPS, "delay_ns": 50_000_000, "queue": {"kind": "drop_tail", "limit_pkts": 300}}
        link = {"name": "link", "forward": forward, "reverse": {"delay_ns": 50_000_000}}
        flow = {"name": "flow", "variant": variant, "stack": {"initial_ssthresh_pkts": 60}}
        config = {"duration_ns": 120_000_000_000, "path": {"nodes": ["a", "b"], "links": [link]}, "flows": [flow]}
        told = run_configurations([Configuration(config, 1, recorded=True)], segments=False, samples=500)["instruments"]
        srtt_ms = told["srtt_ns"].drop_null().to_numpy() / 1e6
        return float(srtt_ms[len(srtt_ms) // 2 :].mean() - 101.2)

    # Two to four packets of 1.2 ms each, against a queue that newreno fills and empties.
    assert 1.0 < queueing_ms("vegas") < 7.0
    assert queueing_ms("newreno") > 60.0
