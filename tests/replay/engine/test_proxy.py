"""The on-board agent of Luglio et al. 2004 §III: a buffer of three bandwidth-delay products fills the link.

A smaller buffer does not, and a larger one gains nothing.
"""

from __future__ import annotations

import pytest

from hindflight.replay.experiment.run import Configuration, run_configurations

RATE_BPS = 1e6
ONE_WAY_NS = 125_000_000
SMSS_BYTES, HEADER_BYTES = 1460, 40
PIPE_PKTS = 21
"""What a GEO hop of 1 Mbit/s holds: 1e6 * 0.25 / (8 * 1500), rounded up."""


def utilisation(buffer_pkts: int, variant: str) -> float:
    """Share of the link's rate that a flow through the agent gets, without losses; the first quarter is left out."""
    hop = {"rate_bps": RATE_BPS, "delay_ns": ONE_WAY_NS, "queue": {"kind": "drop_tail", "limit_pkts": 1000}}
    links = [{"name": name, "forward": hop, "reverse": hop} for name in ("up", "down")]
    proxy = {
        "node": "satellite",
        "receive_buffer": {"pkts": buffer_pkts},
        "advertise": "third",
        "forward_window": "third",
    }
    stack = {"smss_bytes": SMSS_BYTES, "header_bytes": HEADER_BYTES, "receive_buffer_bytes": 1 << 20}
    flow = {"name": "flow", "variant": variant, "profile": "ns2", "stack": stack, "proxies": [proxy]}

    def delivered(seconds: int) -> int:
        path = {"nodes": ["new york", "satellite", "san francisco"], "links": links}
        config = {"duration_ns": seconds * 1_000_000_000, "path": path, "flows": [flow]}
        [octets] = run_configurations([Configuration(config, 1, recorded=False)])["runs"]["delivered_bytes"].to_pylist()
        return int(octets)

    packets = (delivered(120) - delivered(30)) / SMSS_BYTES
    return packets * 8 * (SMSS_BYTES + HEADER_BYTES) / 90 / RATE_BPS


@pytest.mark.parametrize("variant", ["newreno", "westwood-bwe"])
def test_three_pipes_fill_the_link_and_two_do_not(variant: str) -> None:
    # A round trip of 262 ms, with a packet's own time, holds 21.8; thirds of two and of three pipes are 14 and 21.
    assert utilisation(2 * PIPE_PKTS, variant) == pytest.approx(14 / 21.8, abs=0.03)
    three = utilisation(3 * PIPE_PKTS, variant)
    assert three == pytest.approx(21 / 21.8, abs=0.03)
    assert three < utilisation(4 * PIPE_PKTS, variant) <= 1.001
