"""The recommendation of a report: the choice, where its proxy is, its cache, and how sure that is."""

from __future__ import annotations

from typing import Any

import pytest

from hindflight.replay.experiment.advice import advised, placement_of, recommendation
from hindflight.replay.experiment.cache_knee import CacheKnee
from hindflight.replay.scenario.model import Scenario, parse_scenario

LINK = {"rate": "1 Mbit/s", "delay": "100 ms", "queue": "100 pkts"}
CHOICES = [("newreno", "none"), ("cubic", "none"), ("newreno", "sender-side"), ("cubic", "sender-side+box")]


def _gain(subject: str, value: float, low: float, high: float) -> dict[str, Any]:
    labels = {"section": "what_if", "subject": subject, "metric": "goodput_gain"}
    return {**labels, "value": value, "low": low, "high": high, "verdict": "info"}


def _way(subject: str, way: str, value: float) -> dict[str, Any]:
    return {"section": "sensitivity", "subject": subject, "metric": f"by_{way}", "value": value}


def _runs(held_bytes: int = 0) -> list[dict[str, Any]]:
    labels = {"purpose": "what_if", "role": "under_test", "proxy_held_max_bytes": held_bytes}
    return [{**labels, "variant": variant, "proxy": proxy} for variant, proxy in CHOICES]


def _scenario(captured: bool) -> Scenario:
    data: dict[str, Any] = {
        "name": "advice", "duration": "10 s", "path": ["a", "near", "relay", "b"],
        "links": [{"name": name, **LINK} for name in "xyz"],
        "flow": {"profile": "rfc", "size": "greedy"},
        "proxy": [
            {"name": "sender-side", "node": "near", "variant": "bbr", "receive_buffer": "9 kB"},
            {"name": "box", "node": "relay"},
        ],
        "compare": {"variants": ["newreno", "cubic"], "proxies": ["none", "sender-side", "sender-side+box"]},
    }  # fmt: skip
    if captured:
        data["captured"] = {"input": "x", "sha256": "0" * 64, "flow_id": 1, "variant": "newreno"}
    return parse_scenario(data, "advice.toml", ("newreno", "cubic", "bbr"))


def test_a_proxy_is_recommended_with_its_place_its_variant_and_its_cache() -> None:
    gains = [_gain("newreno, through sender-side", 30, 20, 40), _gain("cubic", 10, 5, 15)]
    best = advised(gains, _runs())
    assert best is not None
    assert (best.variant, best.chain) == ("newreno", "sender-side")
    said = placement_of(_scenario(captured=True), best, CacheKnee(250_000, 1_000_000), _runs())
    assert said == (
        " The proxy sender-side is in the sender's network, before the bottleneck, its losses and nearly all of the "
        "delay; it sends onward with bbr. With a cache of 250 kB, it has 95 % of the goodput that it has with 1,000 kB."
    )
    first, *_ = recommendation(gains, best, said)
    assert first["verdict"] == "pass"
    assert first["text"].startswith(
        "Use newreno, through sender-side (+30 % goodput, 95 % interval +20.0 to +40.0 %). "
    )
    assert first["text"].endswith(said)


def test_a_chain_has_a_sentence_for_each_proxy_and_its_buffers_without_a_knee() -> None:
    gains = [_gain("cubic, through sender-side+box", 30, 20, 40)]
    best = advised(gains, _runs(64_000))
    assert best is not None
    said = placement_of(_scenario(captured=False), best, None, _runs(64_000))
    assert said == (
        " The proxy sender-side is at near; it sends onward with bbr. The proxy box is at relay; it sends onward with "
        "cubic."
        " It buffered up to 64 kB: give it at least that much."
    )


def test_a_rival_without_a_proxy_comes_before_others() -> None:
    gains = [
        _gain("newreno, through sender-side", 30, 20, 40),
        _gain("cubic, through sender-side+box", 29, 19, 39),
        _gain("cubic", 21, 11, 31),
    ]
    texts = [row["text"] for row in recommendation(gains, advised(gains, _runs()), "")]
    assert texts[1] == "cubic may be as good: the 95 % intervals of the two gains overlap."


@pytest.mark.parametrize(("other", "said"), [(1.009e6, "In all 2 ways"), (1.02e6, "only in 1 of 2 ways")])
def test_a_choice_within_the_error_of_the_engine_of_the_best_is_the_best(other: float, said: str) -> None:
    gains = [_gain("cubic", 30, 20, 40), _gain("newreno, through sender-side", 29, 19, 39)]
    ways = [
        _way("cubic", "time", 1e6),
        _way("cubic", "model", 2e6),
        _way("newreno, through sender-side", "time", other),
    ]
    texts = [row["text"] for row in recommendation([*gains, *ways], advised(gains, _runs()), "")]
    assert said in texts[-1]


def test_nothing_is_recommended_after_a_failed_check_or_without_a_sure_gain() -> None:
    failed = {"section": "self_check", "metric": "goodput_difference", "verdict": "fail"}
    sure = _gain("cubic", 30, 20, 40)
    assert advised([failed, sure], _runs()) is None
    assert recommendation([failed, sure], None, "")[0]["verdict"] == "fail"
    assert advised([_gain("cubic", 5, -1, 11)], _runs()) is None
    assert recommendation([_gain("cubic", 5, -1, 11)], None, "")[0]["verdict"] == "unknown"
    assert recommendation([], None, "") == []
