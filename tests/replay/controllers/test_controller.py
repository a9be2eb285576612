"""Controllers in Python: Reno of the base class compared with the engine's, a custom variant, and errors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import hindflight as hf
from hindflight.replay.catalogue import engine_variant_names
from hindflight.replay.controllers import base as registry
from hindflight.replay.controllers.base import Controller, registered_controllers, variant_names
from hindflight.replay.controllers.check import check_controller
from hindflight.replay.experiment.run import Configuration, run_configurations
from hindflight.toolkit.errors import ControllerError, HindflightError, ScenarioError

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


def _run(variant: str, **stack: Any) -> dict[str, Any]:
    direction = {"rate_bps": 1e7, "delay_ns": 50_000_000}
    lossy = {**direction, "loss": {"kind": "bernoulli", "per": 0.002}}
    link = {"name": "link", "forward": lossy, "reverse": direction}
    path = {"nodes": ["a", "b"], "links": [link]}
    # The base class takes all that an ACK delivers in slow start, RFC 5681 one segment.
    flow = {"name": "flow", "variant": variant, "stack": stack or {"slow_start_limit_pkts": 1000}}
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
    observed: list[float] = []

    class Listening(Controller, variant="listening"):
        def observe(self, ack: Any) -> None:
            observed.append(ack.now_s)

    assert Listening.observes
    assert not Controller.observes
    run = _run("listening")
    assert len(observed) > 100
    assert observed == sorted(observed)
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
        hf.report(tables, tmp_path / "report.html", title="Gentle and others")
    assert {run["variant"] for run in runs} == {"newreno", "gentle"}
    assert any("gentle" in subject for subject in subjects)
    page = (tmp_path / "report.html").read_text()
    assert "Gentle and others" in page
    assert page.count("gentle") > 3


def test_what_it_raises_ends_the_replay_in_one_line_with_its_cause() -> None:
    class Broken(Controller, variant="broken"):
        def on_ack(self, ack: Any) -> None:
            raise LookupError(f"at {ack.snd_una}")

    class Boundless(Controller, variant="boundless"):
        def on_congestion(self, signal: Any) -> None:  # noqa: ARG002
            self.cwnd = math.inf

    class Wordy(Controller, variant="wordy"):
        def on_ack(self, ack: Any) -> None:  # noqa: ARG002
            self.cwnd = "forty"  # type: ignore[assignment]

    class Picky(Controller, variant="picky"):
        def __init__(self, cwnd: float) -> None:
            super().__init__(cwnd, math.inf)

    # A mistake that the engine could take for one in the configuration.
    class Careless(Controller, variant="careless"):
        def on_ack(self, ack: Any) -> None:  # noqa: ARG002
            int("one")

    for variant, line in (
        ("broken", r"Broken\.on_ack at 0\.\d+ s raises LookupError: at \d+"),
        ("boundless", r"Boundless\.on_congestion at \d+\.\d+ s leaves cwnd = inf and ssthresh = .*: both are numbers"),
        ("wordy", r"Wordy\.on_ack at 0\.\d+ s leaves cwnd = 'forty' and ssthresh = inf"),
        ("picky", r"Picky\.__init__ raises TypeError: .*takes 2 positional arguments"),
        ("careless", r"Careless\.on_ack at 0\.\d+ s raises ValueError: invalid literal"),
    ):
        with pytest.raises(ControllerError, match=f"^{line}") as caught:
            _run(variant)
        assert "\n" not in str(caught.value)
        assert caught.value.hint
    with pytest.raises(ControllerError) as caught:
        _run("broken")
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_fixed_window_is_refused_because_the_controller_decides() -> None:
    class Mine(Controller, variant="mine"):
        pass

    assert _run("linux-reno", fixed_window_pkts=20)["delivered_bytes"] > 0
    with pytest.raises(ScenarioError, match="FixedWindowVariant"):
        _run("mine", fixed_window_pkts=20)


def test_the_window_of_its_making_is_where_it_starts() -> None:
    class Fixed(Controller, variant="fixed"):
        holds_window = True

        def __init__(self, cwnd: float, ssthresh: float) -> None:  # noqa: ARG002
            super().__init__(40.0, ssthresh)

        def on_ack(self, ack: Any) -> None:
            pass

        def on_congestion(self, signal: Any) -> None:
            pass

        def on_timeout(self, signal: Any) -> None:
            pass

        def on_idle(self, initial_window: float, idle_s: float) -> None:
            pass

    class Bare(Controller, variant="bare"):
        def __init__(self, cwnd: float, ssthresh: float) -> None:
            """Leave the windows to the engine."""

        def on_ack(self, ack: Any) -> None:
            self.cwnd += ack.delivered_pkts

    assert check_controller(Fixed) == []
    # 40 segments in each round trip of 101.2 ms, less those of loss recovery.
    segments = _run("fixed")["delivered_bytes"] / 1448
    assert 0.85 * 40 * 20 / 0.1012 < segments < 40 * 20 / 0.1012
    assert _run("bare")["delivered_bytes"] > 0


def test_a_name_is_taken_once() -> None:
    with pytest.raises(HindflightError, match="there is a variant cubic already"):

        class Cubic(Controller, variant="cubic"):
            pass

    with pytest.raises(HindflightError, match="cannot name a variant"):

        class Odd(Controller, variant="a b"):
            pass

    with pytest.raises(HindflightError, match="3 cannot name a variant"):

        class Number(Controller, variant=3):  # type: ignore[arg-type]
            pass


def test_a_class_without_a_name_is_refused_unless_it_is_a_base() -> None:
    with pytest.raises(HindflightError, match="the controller Nameless has no name") as caught:

        class Nameless(Controller):
            pass

    assert 'class Nameless(Controller, variant="NAME")' in str(caught.value.hint)

    class Base(Controller, variant=None):
        pass

    class Named(Base, variant="named-over-base"):
        pass

    assert registered_controllers()["named-over-base"] is Named
    assert Base not in registered_controllers().values()


class _Stubborn(Controller, variant=None):
    def on_congestion(self, signal: Any) -> None:  # noqa: ARG002
        self.cwnd += 1


class _Still(Controller, variant=None):
    def on_ack(self, ack: Any) -> None:
        pass


class _Vanishing(Controller, variant=None):
    def on_timeout(self, signal: Any) -> None:  # noqa: ARG002
        self.cwnd = 0.0


class _Lost(Controller, variant=None):
    def on_ack(self, ack: Any) -> None:  # noqa: ARG002
        self.cwnd = math.nan


class _Unsure(Controller, variant=None):
    def on_ack(self, ack: Any) -> None:
        self.cwnd = 10 / ack.rtt_s


class _Careful(Controller, variant=None):
    def on_ack(self, ack: Any) -> None:
        if ack.rtt_s is not None:
            self.cwnd += 1 / ack.rtt_s


class _Eager(Controller, variant=None):
    def on_ack(self, ack: Any) -> None:
        self.cwnd += ack.delivered_pkts


class _Deaf(Controller, variant=None):
    def on_congestion(self, signal: Any) -> None:
        pass


class _Brave(Controller, variant=None):
    def on_timeout(self, signal: Any) -> None:  # noqa: ARG002
        self.cwnd = min(self.cwnd, 3.0)


class _Awake(Controller, variant=None):
    def on_idle(self, initial_window: float, idle_s: float) -> None:
        pass


class _Marked(Controller, variant=None):
    def on_congestion(self, signal: Any) -> None:
        if signal.kind == "ecn_echo":
            self.cwnd += 5
        else:
            super().on_congestion(signal)


class _Fickle(Controller, variant=None):
    made = 0

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        super().__init__(cwnd, ssthresh)
        _Fickle.made += 1
        self.odd = _Fickle.made % 2

    def on_congestion(self, signal: Any) -> None:
        super().on_congestion(signal)
        self.cwnd = self.ssthresh = max(self.cwnd - self.odd, 2.0)


class _Moving(Controller, variant=None):
    holds_window = True


class _Picky(Controller, variant=None):
    def __init__(self, cwnd: float) -> None:
        super().__init__(cwnd, math.inf)


@pytest.mark.parametrize(
    ("controller", "findings"),
    [
        (Controller, []),
        (
            _Stubborn,
            [
                "a loss increases the window",
                "a congestion mark increases the window",
                "a loss does not decrease the window: ",
            ],
        ),
        (_Still, ["a fully used window without losses does not increase"]),
        (_Vanishing, ["on_timeout leaves cwnd = 0.0 and ssthresh = "]),
        (_Lost, ["on_ack leaves cwnd = nan and ssthresh = inf: both are numbers of 1 at least"]),
        (_Unsure, ["on_ack raises TypeError: unsupported operand", "a window that is not fully used increases"]),
        (_Careful, ["a window that is not fully used increases", "on_ack raises ZeroDivisionError"]),
        (_Eager, ["a window that is not fully used increases: "]),
        (_Deaf, ["a loss does not decrease the window: "]),
        (_Brave, ["a timeout leaves 3 segments, not one (RFC 5681 §3.1)"]),
        (_Awake, ["idleness leaves "]),
        (_Marked, ["a congestion mark increases the window: "]),
        (_Fickle, ["equal events give different windows"]),
        (_Moving, ["a fixed window (holds_window) changes from 10 to "]),
        (_Picky, ["__init__ raises TypeError: "]),
    ],
)
def test_the_contract_finds_what_is_against_it(controller: Any, findings: list[str]) -> None:
    found = check_controller(controller)
    unexplained = [one for one in found if not any(one.startswith(line) for line in findings)]
    missing = [line for line in findings if not any(one.startswith(line) for one in found)]
    assert (unexplained, missing) == ([], []), found
    assert len(found) == len(set(found)) <= max(len(findings), 1)


def test_the_contract_wants_a_class() -> None:
    for other in ("gentle", Controller(10.0, math.inf)):
        with pytest.raises(HindflightError, match="makes no controllers"):
            check_controller(other)  # type: ignore[arg-type]


def test_without_sack_each_segment_is_reported_once() -> None:
    observed = {"acked": 0, "delivered": 0, "duplicates": 0}

    class Listening(Controller, variant="listening"):
        def observe(self, ack: Any) -> None:
            observed["acked"] += ack.acked_bytes
            observed["delivered"] += ack.delivered_pkts
            observed["duplicates"] += ack.acked_bytes == 0 and ack.delivered_pkts == 1

    direction = {"rate_bps": 1e7, "delay_ns": 50_000_000}
    lossy = {**direction, "loss": {"kind": "bernoulli", "per": 0.002}}
    path = {"nodes": ["a", "b"], "links": [{"name": "link", "forward": lossy, "reverse": direction}]}
    for profile in ("rfc", "ns2"):
        observed.update(acked=0, delivered=0, duplicates=0)
        stack = {"recovery": "newreno", "sack": False}
        flow = {"name": "flow", "variant": "listening", "profile": profile, "stack": stack}
        config = {"duration_ns": 20_000_000_000, "path": path, "flows": [flow]}
        (run,) = run_configurations([Configuration(config, 3, recorded=False)])["runs"].to_pylist()
        assert run["retransmissions"] > 3
        assert observed["duplicates"] > 50
        # Each segment once: those reported by duplicate ACKs are not reported again when they are acknowledged.
        assert observed["delivered"] == pytest.approx(observed["acked"] / 1448, rel=0.01)


class _Model(Controller, variant=None):
    """Maximum delivery rate times minimum round-trip time of the connection: two products in flight, paced."""

    models_path = True
    paces = True

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        super().__init__(cwnd, ssthresh)
        self.rate_pkts_per_s = 0.0

    def on_ack(self, ack: Any) -> None:
        if ack.delivery_rate_pkts_per_s is not None and not ack.app_limited:
            self.rate_pkts_per_s = max(self.rate_pkts_per_s, ack.delivery_rate_pkts_per_s)
        if self.rate_pkts_per_s and ack.min_rtt_s:
            self.pacing_rate_pkts_per_s = 1.25 * self.rate_pkts_per_s
            self.cwnd = max(4.0, 2 * self.rate_pkts_per_s * ack.min_rtt_s)

    def on_congestion(self, signal: Any) -> None:
        """A loss says nothing about the path."""


def test_a_model_of_the_path_gets_rate_samples_and_paces() -> None:
    class Model(_Model, variant="model"):
        pass

    class Loss(Controller, variant="loss-based"):
        pass

    model, loss_based = _run("external:model"), _run("external:loss-based")
    assert model["retransmissions"] > 10
    assert model["goodput_bps"] > 9e6 > 1.5 * loss_based["goodput_bps"]
    assert check_controller(_Model) == []


def test_samples_are_what_the_path_delivers_and_round_trips_can_be_counted() -> None:
    rates: list[float] = []
    rounds: list[float] = []
    reported: list[int] = []

    class Watching(_Model, variant="watching"):
        end = 0

        def on_ack(self, ack: Any) -> None:
            super().on_ack(ack)
            reported.append(ack.newly_lost_pkts)
            if ack.delivery_rate_pkts_per_s is None:
                return
            rates.append(ack.delivery_rate_pkts_per_s)
            if ack.prior_delivered_pkts >= self.end:
                self.end = ack.delivered_total_pkts
                rounds.append(ack.now_s)

    run = _run("external:watching")
    line_rate = 1e7 / (8 * 1500)
    assert 0.99 * line_rate < max(rates) <= 1.001 * line_rate
    assert 20 / 0.25 < len(rounds) < 20 / 0.09
    assert sum(reported) >= run["retransmissions"] - 1


def test_pacing_spaces_the_segments() -> None:
    class Slow(_Model, variant="slow"):
        def on_ack(self, ack: Any) -> None:
            super().on_ack(ack)
            self.pacing_rate_pkts_per_s = 100.0

    goodput = _run("external:slow")["goodput_bps"]
    assert 0.9 < goodput / (100 * 1448 * 8) < 1.0


def test_a_pacing_rate_that_is_none_is_refused() -> None:
    class Wrong(_Model, variant="wrong"):
        def on_ack(self, ack: Any) -> None:  # noqa: ARG002 - the rate is wrong whatever the ACK says
            self.pacing_rate_pkts_per_s = 0.0

    with pytest.raises(
        ControllerError, match=r"Wrong\.on_ack at .* leaves pacing_rate_pkts_per_s = 0\.0: it is None or"
    ):
        _run("external:wrong")


def test_a_model_that_does_not_pace_gets_samples_and_observes_every_ack() -> None:
    acks: dict[str, int] = {"observe": 0, "on_ack": 0, "sampled": 0}

    class Unpaced(_Model, variant="unpaced"):
        paces = False

        def observe(self, ack: Any) -> None:  # noqa: ARG002 - it only counts
            acks["observe"] += 1

        def on_ack(self, ack: Any) -> None:
            acks["on_ack"] += 1
            acks["sampled"] += ack.delivery_rate_pkts_per_s is not None
            super().on_ack(ack)

    _run("external:unpaced")
    assert acks["on_ack"] > 1000
    assert acks["sampled"] > 0.9 * acks["on_ack"]
    assert acks["observe"] >= acks["on_ack"]


class _Unpaceable(_Model, variant=None):
    """Its pacing rate is 0 from the first ACK."""

    def on_ack(self, ack: Any) -> None:
        super().on_ack(ack)
        self.pacing_rate_pkts_per_s = 0.0


class _Wordy(_Model, variant=None):
    """Its pacing rate is not a number."""

    pacing_rate_pkts_per_s: Any = "fast"

    def on_ack(self, ack: Any) -> None:
        """It leaves the rate alone."""


def test_the_contract_looks_at_the_pacing_rate() -> None:
    findings = check_controller(_Unpaceable)
    assert any("pacing_rate_pkts_per_s = 0.0" in finding for finding in findings)
    assert any("pacing_rate_pkts_per_s = 'fast'" in finding for finding in check_controller(_Wordy))


def test_an_option_that_a_controller_never_sees_is_refused(tmp_path: Path) -> None:
    class Gentle(Controller, variant="gentle"):
        pass

    limited = SCENARIO.replace('size = "greedy"', 'size = "greedy"\nslow_start_limit = "2 pkts"')
    path = tmp_path / "s.toml"
    path.write_text(limited.replace('["newreno", "gentle"]', '["gentle"]'))
    with pytest.raises(ScenarioError, match=r"flow\.slow_start_limit: has no effect on a controller in Python"):
        hf.replay(path)
    path.write_text(limited.replace('["newreno", "gentle"]', '["linux-reno", "gentle"]'))
    assert hf.replay(path).arrow("runs").num_rows, "another variant obeys it"
