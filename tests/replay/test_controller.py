"""Controllers in Python: Reno by the base class beside the engine's, a variant of one's own, and what goes wrong."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import hindflight as hf
from replay import controller as registry
from replay.controller import Controller
from replay.controller_check import check_controller
from replay.run import Configuration, engine_variant_names, run_configurations, variant_names
from toolkit.errors import HindflightError

SCENARIO = """
name = "two nodes"
duration = "4 s"
path = ["sender", "receiver"]

[flow]
size = "greedy"

[[links]]
name = "link"
rate = "10 Mbit/s"
delay = "50 ms"
loss = { model = "bernoulli", per = 0.001 }

[compare]
variants = ["newreno", "gentle"]
seeds = 2
"""


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_registered", {})


def _run(variant: str) -> dict[str, Any]:
    direction = {"rate_bps": 1e7, "delay_ns": 50_000_000}
    lossy = {**direction, "loss": {"kind": "bernoulli", "per": 0.002}}
    link = {"name": "link", "forward": lossy, "reverse": direction}
    path = {"nodes": ["a", "b"], "links": [link]}
    # The base class takes all that an ACK delivers in slow start, RFC 5681 one segment.
    flow = {"name": "flow", "variant": variant, "stack": {"slow_start_limit_pkts": 1000}}
    config = {"duration_ns": 20_000_000_000, "path": path, "flows": [flow]}
    (run,) = run_configurations([Configuration(config, 3, recorded=False)])["runs"].to_pylist()
    return dict(run)


def test_the_base_class_is_reno_packet_for_packet() -> None:
    class Mine(Controller, variant="mine"):
        pass

    mine, reno = _run("mine"), _run("linux-reno")
    assert mine["retransmissions"] > 3
    assert mine["variant"] == "mine"
    assert {name for name in reno if mine[name] != reno[name]} == {"variant"}


def test_the_methods_that_are_overridden_govern() -> None:
    class Gentle(Controller, variant="gentle"):
        def on_congestion(self, signal: Any) -> None:
            assert signal.kind == "loss"
            self.cwnd = self.ssthresh = max(0.9 * self.cwnd, 2.0)

    assert "gentle" in variant_names()
    assert "gentle" not in engine_variant_names()
    assert _run("gentle")["delivered_bytes"] > 1.1 * _run("linux-reno")["delivered_bytes"]


def test_observe_is_called_only_where_it_is_written() -> None:
    heard: list[float] = []

    class Listening(Controller, variant="listening"):
        def observe(self, ack: Any) -> None:
            heard.append(ack.now_s)

    assert Listening.observes
    assert not Controller.observes
    run = _run("listening")
    assert len(heard) > 100
    assert heard == sorted(heard)
    assert run["delivered_bytes"] == _run("linux-reno")["delivered_bytes"]


def test_a_scenario_compares_it_like_any_other(tmp_path: Path) -> None:
    class Gentle(Controller, variant="gentle"):
        def on_congestion(self, signal: Any) -> None:  # noqa: ARG002
            self.cwnd = self.ssthresh = max(0.9 * self.cwnd, 2.0)

    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    with hf.replay(path) as tables:
        runs = tables.arrow("runs").to_pylist()
        subjects = {row["subject"] for row in tables.arrow("findings").to_pylist()}
    assert {run["variant"] for run in runs} == {"newreno", "gentle"}
    assert any("gentle" in subject for subject in subjects)


def test_what_it_raises_ends_the_replay_and_is_raised() -> None:
    class Broken(Controller, variant="broken"):
        def on_ack(self, ack: Any) -> None:
            raise LookupError(f"at {ack.snd_una}")

    class Boundless(Controller, variant="boundless"):
        def on_ack(self, ack: Any) -> None:  # noqa: ARG002
            self.cwnd = math.inf

    with pytest.raises(LookupError, match="at "):
        _run("broken")
    with pytest.raises(RuntimeError, match="Boundless left cwnd = inf"):
        _run("boundless")


def test_a_name_is_taken_once() -> None:
    with pytest.raises(HindflightError, match="there is a variant cubic already"):

        class Cubic(Controller, variant="cubic"):
            pass

    with pytest.raises(HindflightError, match="cannot name a variant"):

        class Odd(Controller, variant="a b"):
            pass


def test_the_contract_finds_what_is_against_it() -> None:
    class Stubborn(Controller):
        def on_congestion(self, signal: Any) -> None:  # noqa: ARG002
            self.cwnd += 1

    class Idle(Controller):
        def on_ack(self, ack: Any) -> None:
            pass

    class Vanishing(Controller):
        def on_timeout(self, signal: Any) -> None:  # noqa: ARG002
            self.cwnd = 0.0

    assert check_controller(Controller) == []
    assert check_controller(Stubborn) == ["a loss raises the window"]
    assert check_controller(Idle) == ["a window that is used and loses nothing does not grow"]
    assert any("after: timeout" in problem for problem in check_controller(Vanishing))
