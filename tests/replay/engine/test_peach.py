"""Peach next to a flow that fills the link: the effect of its dummy segments, with and without a priority queue.

And alone, over paths that hold fewer segments than Sudden Start sends, and over one that holds more.
"""

from __future__ import annotations

from functools import cache

import pytest

from hindflight.replay.experiment.run import Configuration, run_configurations

RATE_BPS = 10e6
ONE_WAY_NS = 125_000_000
DURATION_NS = 120_000_000_000
QUEUES = {
    "drop_tail": {"kind": "drop_tail", "limit_pkts": 200},
    "priority": {"kind": "priority", "limit_pkts": 200, "classes": [[0]]},
}


@cache
def shares_mbps(queue: str, newcomer: str) -> tuple[float, float]:
    """Goodput over the whole run of cubic, which was there first, and of who comes after 20 s."""
    forward = {"rate_bps": RATE_BPS, "delay_ns": ONE_WAY_NS, "queue": QUEUES[queue]}
    link = {"name": "geo", "forward": forward, "reverse": {"rate_bps": RATE_BPS, "delay_ns": ONE_WAY_NS}}
    stack = {"receive_buffer_bytes": 1 << 24}
    # As peach where no dummy segment comes through: no slow start.
    own = {**stack, "initial_ssthresh_pkts": 10} if newcomer == "linux-reno" else stack
    flows = [
        {"name": "first", "variant": "cubic", "profile": "linux", "stack": stack},
        {"name": "second", "variant": newcomer, "start_ns": 20_000_000_000, "profile": "linux", "stack": own},
    ]
    config = {"duration_ns": DURATION_NS, "path": {"nodes": ["ground", "user"], "links": [link]}, "flows": flows}
    runs = run_configurations([Configuration(config, 1, recorded=False)])["runs"]
    first, second = (8e3 * octets / DURATION_NS for octets in runs["delivered_bytes"].to_pylist())
    return first, second


def test_with_a_priority_queue_dummy_segments_do_not_pass_if_data_fills_the_link() -> None:
    alone, reno = shares_mbps("drop_tail", "linux-reno")
    first, peach = shares_mbps("priority", "peach")
    # The same as a new flow without dummy segments, and cubic has the same goodput as next to that flow.
    assert peach == pytest.approx(reno, rel=0.05)
    assert first == pytest.approx(alone, rel=0.05)


def test_with_any_other_queue_dummy_segments_displace_the_other_flow() -> None:
    alone, reno = shares_mbps("drop_tail", "linux-reno")
    first, peach = shares_mbps("drop_tail", "peach")
    assert peach > 2.5 * reno
    assert first < 0.85 * alone


def test_the_queue_does_not_affect_other_variants() -> None:
    assert shares_mbps("priority", "linux-reno") == shares_mbps("drop_tail", "linux-reno")


@cache
def alone_mbps(variant: str, profile: str, rate_bps: float, rtt_ns: int, *, loss: float = 0.0, **params: int) -> float:
    """Goodput over 100 s of one flow, behind a queue of the path's product."""
    queue = {"kind": "drop_tail", "limit_pkts": max(6, int(rate_bps * rtt_ns / 12e12))}
    back = {"rate_bps": rate_bps, "delay_ns": rtt_ns // 2}
    ahead = {**back, "queue": queue, "loss": {"kind": "bernoulli", "per": loss}}
    path = {"nodes": ["ground", "user"], "links": [{"name": "link", "forward": ahead, "reverse": back}]}
    flow = {"name": "flow", "variant": variant, "profile": profile, "params": params}
    flow["stack"] = {"receive_buffer_bytes": 1 << 26}
    config = {"duration_ns": 100_000_000_000, "path": path, "flows": [flow]}
    seeds = (1, 2, 3) if loss else (1,)
    runs = run_configurations([Configuration(config, seed, recorded=False) for seed in seeds])["runs"]
    return float(8e-8 * runs["delivered_bytes"].to_numpy().mean())


LEO_NS, GEO_NS = 40_000_000, 500_000_000


@pytest.mark.parametrize("profile", ["rfc", "ns2", "linux"])
def test_a_path_that_holds_less_than_sudden_start_sends_is_filled(profile: str) -> None:
    # 12 segments in all; the first ACKs of a timeout must not meet 63 dummy segments again.
    peach, newreno = (alone_mbps(variant, profile, 2e6, LEO_NS) for variant in ("peach", "newreno"))
    assert 0.9 * newreno < peach < 1.05 * newreno
    assert alone_mbps("peach", profile, 5e6, LEO_NS, loss=0.01) > 1.15 * alone_mbps(
        "newreno", profile, 5e6, LEO_NS, loss=0.01
    )


@pytest.mark.parametrize("rate_bps", [10e6, 11e6, 20e6])
def test_acks_of_several_segments_do_not_reduce_the_dummy_segments(rate_bps: float) -> None:
    # Linux's receiver sends an ACK per 1.1 ms after a gap: for more than one segment from 11 Mbit/s on.
    linux, rfc = (alone_mbps("peach", profile, rate_bps, GEO_NS, loss=0.01) for profile in ("linux", "rfc"))
    assert linux == pytest.approx(rfc, rel=0.2)
    assert linux > 2.5 * alone_mbps("newreno", "linux", rate_bps, GEO_NS, loss=0.01)


@pytest.mark.parametrize("profile", ["rfc", "ns2", "linux"])
def test_over_a_short_link_with_loss_peach_is_far_above_newreno_and_below_the_link(profile: str) -> None:
    # Each loss removes the dummy segments not sent at the end of recovery and those lost on the link: one or two.
    peach, newreno = (alone_mbps(variant, profile, 20e6, LEO_NS, loss=0.01) for variant in ("peach", "newreno"))
    assert 2.7 * newreno < peach < 0.75 * 20
    assert peach > 0.8 * alone_mbps("peach", "rfc", 20e6, LEO_NS, loss=0.01)


@pytest.mark.parametrize("profile", ["rfc", "ns2", "linux"])
def test_sudden_start_of_the_paths_product_fills_it_at_once_and_of_less_does_not(profile: str) -> None:
    newreno = alone_mbps("newreno", profile, 10e6, GEO_NS)
    assert alone_mbps("peach", profile, 10e6, GEO_NS, sudden_start_pkts=417) > max(9.3, 1.05 * newreno)
    assert alone_mbps("peach", profile, 10e6, GEO_NS) < 0.6 * newreno
