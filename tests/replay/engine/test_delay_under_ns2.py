"""Variants that go by delay under the profile ns2, whose timer has a coarse clock and one sample per round trip."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from hindflight.replay.experiment.run import Configuration, run_configurations

DURATION_NS = 100_000_000_000
GEO = (10e6, 250_000_000, 417)
LEO = (20e6, 20_000_000, 66)


@cache
def run(variant: str, path: tuple[float, int, int], loss: float = 0.0) -> dict[str, Any]:
    """One greedy flow over a path of this rate, this delay each way and this queue."""
    rate_bps, delay_ns, queue_pkts = path
    forward: dict[str, Any] = {
        "rate_bps": rate_bps,
        "delay_ns": delay_ns,
        "queue": {"kind": "drop_tail", "limit_pkts": queue_pkts},
    }
    if loss > 0:
        forward["loss"] = {"kind": "bernoulli", "per": loss}
    link = {"name": "link", "forward": forward, "reverse": {"rate_bps": rate_bps, "delay_ns": delay_ns}}
    stack = {"receive_buffer_bytes": 1 << 26}
    flow = {"name": "flow", "variant": variant, "profile": "ns2", "stack": stack}
    config = {"duration_ns": DURATION_NS, "path": {"nodes": ["a", "b"], "links": [link]}, "flows": [flow]}
    row: dict[str, Any] = run_configurations([Configuration(config, 1, recorded=False)])["runs"].to_pylist()[0]
    return row


def share(variant: str, path: tuple[float, int, int], loss: float = 0.0) -> float:
    """Goodput over the link's rate."""
    delivered: int = run(variant, path, loss)["delivered_bytes"]
    return 8e9 * delivered / DURATION_NS / path[0]


def test_vegas_fills_the_link_and_keeps_the_queue_short() -> None:
    assert share("vegas", LEO) > 0.9
    # The path takes 41 ms, a packet 0.6 ms: two to four wait, where reno fills a queue of 40 ms.
    assert 41e6 < run("vegas", LEO)["rtt_p95_ns"] < 46e6
    assert run("linux-reno", LEO)["rtt_p95_ns"] > 70e6


@pytest.mark.parametrize("path", [GEO, LEO])
def test_vegas_is_reno_where_loss_keeps_the_window_small(path: tuple[float, int, int]) -> None:
    assert share("vegas", path, 0.01) == pytest.approx(share("linux-reno", path, 0.01), rel=0.15)


def test_yeah_fills_a_queue_slowly_that_scalable_keeps_full() -> None:
    deep = (20e6, 20_000_000, 660)
    assert share("yeah", deep) > 0.9
    # ns-2's TCP/Linux reaches a smoothed round-trip time of 348 ms with yeah in these 100 s.
    assert run("yeah", deep)["rtt_p95_ns"] == pytest.approx(348e6, rel=0.02)
    assert run("yeah", deep)["rtt_p95_ns"] < 0.85 * run("scalable", deep)["rtt_p95_ns"]
    assert run("yeah", deep)["recoveries"] < run("scalable", deep)["recoveries"] / 5


@pytest.mark.parametrize("path", [GEO, LEO])
@pytest.mark.parametrize("loss", [0.0, 0.001, 0.01])
def test_scps_tp_fills_the_link_without_filling_the_queue(path: tuple[float, int, int], loss: float) -> None:
    assert share("scps-tp", path, loss) > (0.9 if loss < 0.01 else 0.8)
    assert run("scps-tp", path, loss)["queue_losses"] < 20
