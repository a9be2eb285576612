"""The congestion control of a sender from its packets: flows that the engine made, whose variant is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hindflight.replay.experiment import identify
from hindflight.replay.experiment.engine_inputs import Job
from hindflight.replay.experiment.identify import (
    PRIOR,
    CapturedVariant,
    Sender,
    _exceeded,
    _Fit,
    _judge,
    _judge_bounds,
    identify_variant,
)
from hindflight.replay.experiment.run import Recording, run_jobs
from hindflight.replay.scenario.captured_application import sent_data, waits_of
from hindflight.replay.scenario.model import parse_scenario
from hindflight.toolkit.capture import load_capture


def _identified(
    variant: str, folder: Path, *, steady_writes: bool = False, rebuilt: bool = False, **flow: object
) -> CapturedVariant:
    """What the capture of a replay at its sender shows: 40 s over a link with a short queue and some loss.

    `steady_writes`: a timer of the application may have released each departure.
    """
    link = {
        "name": "path", "rate": "4 Mbit/s", "delay": "40 ms", "queue": "20 pkts",
        "loss": {"model": "bernoulli", "per": 0.001},
    }  # fmt: skip
    data = {
        "name": "s", "duration": "40 s", "path": ["sender", "receiver"], "links": [link],
        "flow": {"profile": "linux", **flow}, "compare": {"variants": [variant], "seeds": 1},
    }  # fmt: skip
    scenario = parse_scenario(data, "s.toml", (variant,))
    run_jobs(
        scenario,
        {1: Job(variant, "none", "what_if", "model", 1, recorded=True)},
        {},
        recording=Recording(captures=folder),
    )
    capture = load_capture(next(folder.glob("1-sender.pcap")))
    sent = sent_data(capture.segments, "a2b", 1448)
    sender = Sender(1448, 52, sack=True, initial_window_pkts=10, steady_writes=steady_writes, rebuilt=rebuilt)
    return identify_variant(capture.segments, capture.events, "a2b", sender, waits_of(sent))


@pytest.mark.parametrize("variant", ["linux-reno", "cubic", "bbr", "hybla"])
def test_flows_of_a_variant_show_it(variant: str, tmp_path: Path) -> None:
    found = _identified(variant, tmp_path)
    assert found.name == variant, found
    assert found.probability >= 0.8


def test_a_flow_that_its_application_limits_shows_none(tmp_path: Path) -> None:
    slow = {"kind": "on_off", "rate": "300 kbit/s", "on": "1 s", "off": "100 ms", "write": "500 B"}
    found = _identified("cubic", tmp_path, application=slow)
    assert found.name == "unknown"


def _steady(kbps: int) -> dict[str, object]:
    """Writes at a constant rate for 40 s. Nagle hides waits, so that the sender seems to stop below its window, as one
    that paces does."""
    at_ms = [3000 * 8 / kbps * number for number in range(kbps * 40 // 24)]
    return {"kind": "writes", "at": [f"{ms:.3f} ms" for ms in at_ms], "sizes": ["3000 B"] * len(at_ms)}


def test_a_timer_of_the_application_is_no_pacing(tmp_path: Path) -> None:
    # 2.8 of 4 Mbit/s.
    found = _identified("linux-reno", tmp_path, steady_writes=True, application=_steady(2800))
    assert found.name == "unknown", found
    assert next(iter(found.candidates)) == "linux-reno"


def test_a_window_that_alone_allows_what_was_sent_shows_the_sender_of_steady_writes(tmp_path: Path) -> None:
    found = _identified("cubic", tmp_path, steady_writes=True, application=_steady(3300))
    assert found.name == "cubic", found
    assert found.why.startswith("the application wrote at a constant rate, and its window alone allowed")


def test_a_paced_sender_of_steady_writes_keeps_its_estimate_of_the_rate(tmp_path: Path) -> None:
    # Samples of the rate that the application limits do not lower the estimate, nor the window that follows from it.
    found = _identified("bbr", tmp_path, steady_writes=True, application=_steady(2000))
    assert found.name in ("bbr", "unknown"), found
    assert next(iter(found.candidates)) == "bbr"


def test_what_a_rebuilt_sender_had_in_flight_is_too_inexact_for_bounds(tmp_path: Path) -> None:
    found = _identified("cubic", tmp_path, steady_writes=True, rebuilt=True, application=_steady(3300))
    assert found.name == "unknown", found
    assert next(iter(found.candidates)) == "cubic"
    (always := tmp_path / "always").mkdir()
    assert _identified("cubic", always, rebuilt=True).name == "cubic", "its window limited the sender"


def test_a_window_that_was_exceeded_once_excludes_nobody() -> None:
    allowed = _Fit(agreement=0.8, windows=100, exceeded=0, periods=5)
    once = replace(allowed, exceeded=1)
    fits = {name: allowed if name == "cubic" else once for name in PRIOR}
    assert _judge_bounds(fits, rebuilt=False).name == "unknown"
    fits |= {name: replace(allowed, exceeded=3) for name in fits if name != "cubic"}
    assert _judge_bounds(fits, rebuilt=False).name == "cubic"
    loose = fits | {"cubic": replace(allowed, agreement=0.2)}
    assert _judge_bounds(loose, rebuilt=False).name == "unknown", "a window that never stopped it allows anything"
    untested = {"cubic": replace(allowed, periods=0)}
    assert _judge_bounds(untested, rebuilt=False).name == "unknown", "the only candidate, and nothing tested it"


def test_a_window_is_exceeded_beyond_its_error_and_not_by_one_probe() -> None:
    # Departures of three times between reductions: two beyond, a single one, none; and a time with one departure.
    period = np.array([0, 0, 0, 1, 1, 2, 2, 3])
    beyond = np.array([True, True, False, True, False, False, False, True])
    assert _exceeded(beyond, period) == (1, 3)
    assert _exceeded(beyond[:0], period[:0]) == (0, 0)


def test_small_excesses_do_not_add_up_to_an_exceeded_window(monkeypatch: pytest.MonkeyPatch) -> None:
    # 30 times between reductions, each with two departures of `pkts` in flight, and a window of 100.
    def fit(pkts: int) -> _Fit | None:
        n = 60
        states = pa.table(
            {
                "outstanding_pkts": [pkts] * n, "sacked_pkts": [0] * n, "lost_pkts": [0] * n,
                "retransmitted_pkts": [0] * n, "cwnd_pkts": [100.0] * n, "ssthresh_pkts": [50.0] * n,
            }
        )  # fmt: skip
        monkeypatch.setattr(identify, "replay_controller", lambda *_: states)
        sent, none = np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        times = np.arange(n)
        record = identify._Record([], times, none, sent, times, times, none, sent)
        compared = identify._Compared(none, times // 2)
        return identify._fit_of("cubic", record, Sender(1448, 52, sack=True, initial_window_pkts=10), compared)

    small, large = fit(105), fit(112)
    assert small is not None
    assert large is not None
    assert (small.exceeded, small.periods) == (0, 30), "within the error of the measure"
    assert (large.exceeded, large.periods) == (30, 30)


def test_a_window_above_those_of_all_others_shows_a_paced_sender_without_its_pacing(tmp_path: Path) -> None:
    assert _identified("bbr", tmp_path, steady_writes=True).name == "bbr"


def test_a_window_that_only_a_paced_sender_may_have_needs_its_pacing() -> None:
    # A stack that is none of the candidates: bbr may stop below its window, so its window fits most senders.
    fits = {name: _Fit(agreement=0.86 if name == "bbr" else 0.3, windows=900, exceeded=0, periods=90) for name in PRIOR}
    assert _judge(fits, (0.6, 30), reductions=90).name == "bbr"
    # Where no departure counts, nothing shows whether there was pacing.
    none = _judge(fits, (0.0, 0), reductions=90)
    assert (none.name, next(iter(none.candidates))) == ("unknown", "bbr")
    found = _judge(fits, (0.01, 30), reductions=90)
    assert found.name == "unknown"
    assert not found.candidates, "it is none of them, so that a self-check tries all variants"
    assert "a timer released 1 % of the departures" in found.why


@pytest.mark.parametrize("rebuilt", [False, True])
def test_what_exceeds_their_windows_tells_candidates_that_pace_from_one_another(rebuilt: bool) -> None:
    # A receive window left few windows to compare, and both fit these.
    few = _Fit(agreement=0.9, windows=30, exceeded=0, periods=8)
    fits = {"bbr": few, "bbr3": replace(few, agreement=1.0, exceeded=5), "cubic": replace(few, agreement=0.1)}
    found = _judge(fits, (0.6, 30), reductions=8, rebuilt=rebuilt)
    assert found.name == ("unknown" if rebuilt else "bbr"), "what is rebuilt may exceed any window"
    assert found.candidates["cubic"] < 0.01


def _paced(offsets_us: Sequence[int], spacing_us: int, *, rebuilt: bool = False) -> tuple[float, int]:
    """The share of paced departures where one follows each ACK after so long; behind the last ACK none does."""
    times = [(at * spacing_us, at * spacing_us + offset) for at, offset in enumerate(offsets_us)]
    t_ns = 1000 * np.array([*(t for pair in times for t in pair), len(offsets_us) * spacing_us])
    is_ack = np.arange(len(t_ns)) % 2 == 0
    record = identify._Record([], t_ns, is_ack, ~is_ack, t_ns, t_ns, np.zeros(len(t_ns), np.bool_), ~is_ack)
    return identify._paced_share(record, np.zeros(0, np.int64), rebuilt=rebuilt)


@pytest.mark.parametrize(("spacing_us", "answers_us"), [(1200, 50), (1200, 310), (1200, 600), (600, 160), (3000, 800)])
def test_a_host_that_answers_late_does_not_pace(spacing_us: int, answers_us: int) -> None:
    jitter = [answers_us + 10 * (at % 5) for at in range(200)]
    assert _paced(jitter, spacing_us)[0] == 0.0


def test_a_timer_releases_what_leaves_at_any_time_between_two_acks() -> None:
    anywhere = [(at * 377) % 1190 for at in range(200)]
    assert _paced(anywhere, 1200)[0] == pytest.approx(0.65, abs=0.05)
    assert _paced(anywhere, 1200, rebuilt=True)[0] == pytest.approx(0.16, abs=0.05), "known to a millisecond only"
    often = [(at * 377) % 390 for at in range(200)]
    assert _paced(often, 399) == (0.0, 0), "a host may take as long to answer"
    assert _paced([(at * 377) % 20_000 for at in range(200)], 20_000)[0] > 0.9


def test_a_capture_that_begins_in_mid_flow_shows_it_after_some_reductions(tmp_path: Path) -> None:
    _identified("cubic", tmp_path)
    capture = load_capture(next(tmp_path.glob("1-sender.pcap")))
    sender = Sender(1448, 52, sack=True, initial_window_pkts=None)
    found = identify_variant(capture.segments.slice(500), capture.events, "a2b", sender, [])
    assert found.name == "cubic", found


def test_a_write_comes_before_the_first_new_data_behind_a_wait(tmp_path: Path) -> None:
    _identified("cubic", tmp_path, steady_writes=True, application=_steady(3300))
    capture = load_capture(next(tmp_path.glob("1-sender.pcap")))
    sent = sent_data(capture.segments, "a2b", 1448)
    ends = [end for _, end, _ in waits_of(sent)]
    # One ends just when a segment is repeated.
    repeated = capture.segments.filter(capture.segments["retransmission"])["t_ns"].to_pylist()
    record = identify._record_of(capture.segments, capture.events, ("a2b", 1448), [*ends, *repeated])
    assert record is not None
    writes = [index for index, event in enumerate(record.events) if event[1] == "write"]
    assert len(writes) > 100
    assert all(record.is_new[index + 1] for index in writes)
