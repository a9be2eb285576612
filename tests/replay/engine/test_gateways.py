"""The formula of two gateways (Shang et al. 2005): throughput = min(SatBW, SndBuf/SatRTT, RecBuf/GndRTT)."""

from __future__ import annotations

from typing import Any

import pytest

from hindflight.replay.experiment.run import Configuration, run_configurations

SMSS, HEADERS = 1000, 40
SATELLITE_BPS = 4e6
GROUND_RTT_S, SATELLITE_RTT_S = 0.08, 0.48


def _way(rate_bps: float, delay_s: float) -> dict[str, Any]:
    queue = {"kind": "drop_tail", "limit_pkts": 5000}
    return {"rate_bps": rate_bps, "delay_ns": round(delay_s * 1e9), "queue": queue}


def _link(name: str, rate_bps: float, delay_s: float) -> dict[str, Any]:
    way = _way(rate_bps, delay_s)
    return {"name": name, "forward": way, "reverse": way}


def _steady_bps(path: dict[str, Any], flow: dict[str, Any]) -> float:
    """Octets of payload a second, as bit/s, from 30 to 60 s."""

    def delivered(seconds: int) -> int:
        config = {"duration_ns": seconds * 1_000_000_000, "path": path, "flows": [flow]}
        (octets,) = run_configurations([Configuration(config, 1, False)])["runs"]["delivered_bytes"].to_pylist()
        return int(octets)

    return (delivered(60) - delivered(30)) * 8 / 30


def _stack(**more: Any) -> dict[str, Any]:
    return {"smss_bytes": SMSS, "header_bytes": HEADERS, "timestamps": False, "delayed_ack": False, **more}


@pytest.mark.parametrize(
    ("send_pkts", "receive_pkts", "term"),
    [(600, 200, "SatBW"), (120, 200, "SndBuf"), (600, 20, "RecBuf")],
)
def test_throughput_between_gateways_is_the_least_of_three_terms(send_pkts: int, receive_pkts: int, term: str) -> None:
    path = {
        "nodes": ["server", "ground", "aircraft", "client"],
        "links": [
            _link("ground", 200e6, GROUND_RTT_S / 2),
            _link("satellite", SATELLITE_BPS, SATELLITE_RTT_S / 2),
            _link("lan", 200e6, 0.0001),
        ],
    }
    packet_bits = 8 * SMSS
    terms = {
        "SatBW": SATELLITE_BPS * SMSS / (SMSS + HEADERS),
        "SndBuf": send_pkts * packet_bits / SATELLITE_RTT_S,
        "RecBuf": receive_pkts * packet_bits / GROUND_RTT_S,
    }
    assert min(terms, key=lambda name: terms[name]) == term
    ground = {"receive_buffer": {"pkts": receive_pkts}, "send_buffer": {"pkts": send_pkts}}
    aircraft = {"receive_buffer": {"pkts": 1000}, "send_buffer": {"pkts": 100}}
    gateways = [
        {"node": node, "advertise": "free", **buffers} for node, buffers in (("ground", ground), ("aircraft", aircraft))
    ]
    stack = _stack(receive_buffer_bytes=4_000_000)
    flow = {"name": "f", "variant": "sack", "profile": "rfc", "stack": stack, "proxies": gateways}
    assert _steady_bps(path, flow) == pytest.approx(terms[term], rel=0.05)


def test_a_window_of_w_octets_over_560_ms_gives_w_per_560_ms() -> None:
    # The round trip with the time of a packet: 280 ms each way less 1040 and 40 octets at 100 Mbit/s.
    window, own_s = 64 * SMSS, 8 * (SMSS + 2 * HEADERS) / 100e6
    path = {"nodes": ["a", "b"], "links": [_link("hop", 100e6, (0.56 - own_s) / 2)]}
    stack = _stack(receive_buffer_bytes=window)
    flow = {"name": "f", "variant": "sack", "profile": "rfc", "stack": stack}
    assert _steady_bps(path, flow) == pytest.approx(window * 8 / 0.56, rel=0.02)
