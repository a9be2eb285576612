"""A rate over time from a file, played under a sender above its peak: what arrives is what the trace lets through."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from hindflight.replay.experiment.engine_inputs import engine_config, plan_comparison
from hindflight.replay.experiment.run import Configuration, run_configurations, run_jobs
from hindflight.replay.scenario.model import load_scenario
from hindflight.replay.scenario.rates import read_rates
from hindflight.toolkit.errors import ChannelError, ScenarioError

SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "public" / "links"
MS = 1_000_000
DELAY_NS = MS
PACKET, HEADERS = 1500, 28

SCENARIO = """
name = "rates"
duration = "2 s"
path = ["sender", "receiver"]

[[links]]
name = "link"
rate_file = "link.down"
delay = "10 ms"
queue = "50 pkts"
reverse = { rate = "10 Mbit/s", delay = "10 ms" }

[compare]
variants = ["cubic"]
seeds = 1
"""

TWICE = SCENARIO.replace("queue =", 'rate = "1 Mbit/s"\nqueue =')


def arrived(trace: Path, ends_ms: list[int]) -> list[float]:
    """Datagrams of 1500 bytes that got through by each time, of a constant stream faster than the link's peak."""
    rates = read_rates(trace)
    way = {"rate_trace": rates.config(), "delay_ns": DELAY_NS, "queue": {"kind": "drop_tail", "limit_pkts": 20}}
    stream = {"name": "udp", "packet_bytes": PACKET, "rate_bps": 1.05 * max(rates.rates_bps)}
    configurations = []
    for end in ends_ms:
        end_ns = end * MS + DELAY_NS
        link = {"name": "link", "forward": way, "reverse": {"delay_ns": DELAY_NS}}
        config = {
            "duration_ns": end_ns,
            "path": {"nodes": ["a", "b"], "links": [link]},
            "flows": [{"name": "idle", "start_ns": end_ns, "variant": "reno"}],
            "datagrams": [stream],
        }
        configurations.append(Configuration(config, 1, False))
    runs = run_configurations(configurations)["runs"].to_pylist()
    return [row["delivered_bytes"] / (PACKET - HEADERS) for row in runs if row["variant"] == "udp"]


def write_chances(path: Path, stamps: list[int]) -> None:
    path.write_text("".join(f"{stamp}\n" for stamp in stamps))


def assert_every_bin_is_used(trace: Path) -> None:
    """In every span of 100 ms as many packets arrive as it has chances, within 1 % or one packet."""
    stamps = np.array(trace.read_text().split(), dtype=np.int64)
    ends = list(range(100, int(stamps[-1]) + 1, 100))
    got = np.diff([0, *arrived(trace, ends)])
    # The chance at s belongs to the millisecond that ends at s. The sender is above the peak of every millisecond, so
    # there is no span that it does not fill.
    chances = np.array([np.sum((stamps > end - 100) & (stamps <= end)) for end in ends])
    allowed = np.maximum(1, 0.01 * chances)
    wrong = np.flatnonzero(np.abs(got - chances) > allowed)
    assert not len(wrong), [(ends[i], got[i], int(chances[i])) for i in wrong]


def bursty(path: Path) -> None:
    """Write chances as a recorded Starlink link has them: none in most milliseconds, up to 31 in others, a handover."""
    rng = np.random.default_rng(3)
    per_ms = np.where(rng.random(3000) < 0.25, rng.integers(1, 32, 3000), 0)
    per_ms[1430:1580] = 0
    per_ms[1500], per_ms[-1] = 5, 1
    write_chances(path, np.repeat(np.arange(1, 3001), per_ms).tolist())


def test_chances_of_every_100_ms_are_used(tmp_path: Path) -> None:
    trace = tmp_path / "a.down"
    bursty(trace)
    assert_every_bin_is_used(trace)


def test_the_trace_starts_again_at_its_end(tmp_path: Path) -> None:
    trace = tmp_path / "a.down"
    write_chances(trace, [0, 1, 1, 5, 10])
    assert arrived(trace, [10, 20, 1000]) == pytest.approx([5, 10, 500], abs=1)


def test_the_starlink_trace_under_a_sender_above_its_peak(tmp_path: Path) -> None:
    recorded = SHARED / "starlink-leocc-bw-head.txt.gz"
    if not recorded.exists():
        pytest.skip(f"{recorded} is not here")
    text = gzip.decompress(recorded.read_bytes()).decode()
    trace = tmp_path / "starlink.down"
    trace.write_text(text[: text.rindex("\n") + 1])  # The recording is cut off in its last line.
    assert_every_bin_is_used(trace)


def test_a_scenario_names_the_file(tmp_path: Path) -> None:
    write_chances(tmp_path / "link.down", list(range(2, 1001, 2)))
    path = tmp_path / "a.toml"
    path.write_text(SCENARIO)
    scenario = load_scenario(path, ("cubic",))
    job = plan_comparison(scenario, ("cubic",))[0]
    runs = run_jobs(scenario, {1: job}, {})["runs"].to_pylist()
    # A packet of 1500 bytes every 2 ms.
    assert runs[0]["goodput_bps"] == pytest.approx(6e6 * 1448 / 1500, rel=0.1)
    forward = engine_config(scenario, job, {})["path"]["links"][0]["forward"]
    assert forward["rate_bps"] is None
    assert forward["rate_trace"]["end_ns"] == 1000 * MS


@pytest.mark.parametrize(
    ("scenario", "rates", "message"),
    [
        (TWICE, "0\n1\n", "rate and rate_file both"),
        (SCENARIO.replace("link.down", "other.down"), "0\n1\n", r"links\[0\].rate_file: no such file"),
        (SCENARIO, "1\n0\n", "line 2: 0 ms is earlier"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, scenario: str, rates: str, message: str) -> None:
    (tmp_path / "link.down").write_text(rates)
    path = tmp_path / "a.toml"
    path.write_text(scenario)
    with pytest.raises((ScenarioError, ChannelError), match=message):
        load_scenario(path, ("cubic",))


def test_a_file_without_rates_or_with_gaps_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t_ns,position,lost\n0,0,1\n")
    with pytest.raises(ChannelError, match="gives no rate over time"):
        read_rates(path)
    path.write_text("t_ns,end_ns,rate_bps\n0,5,1000\n6,9,1000\n")
    with pytest.raises(ChannelError, match="interval 2 of a2b begins at 6 ns, the previous one ends at 5 ns"):
        read_rates(path)
    path.write_text("t_ns,end_ns,rate_bps\n0,5,0\n5,9,0\n")
    with pytest.raises(ChannelError, match="the rate is 0 throughout"):
        read_rates(path)
    path.write_text("t_ns,end_ns,rate_bps\n0,1000000000,8000\n1000000000,1500000000,\n")
    with pytest.raises(ChannelError, match=r"gives no rate from 1 s to 1.5 s"):
        read_rates(path)


def test_an_outage_over_the_states_sends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = ["7,20,0,none,1000", "9,12,1,outage,", "20,30,0,none,2000", "25,35,1,outage,"]
    path.write_text("t_ns,end_ns,lost,cause,rate_bps\n" + "\n".join(rows) + "\n")
    rates = read_rates(path)
    assert rates.starts_ns == (0, 2, 5, 13, 18, 23)
    assert rates.rates_bps == (1000.0, 0.0, 1000.0, 2000.0, 0.0, 0.0)
    assert rates.end_ns == 28


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"starts_ns": [0, 5, 5], "rates_bps": [1e6, 1e6, 1e6]}, r"rate_trace.starts_ns\[1\]: NotAscending"),
        ({"starts_ns": [1], "rates_bps": [1e6]}, "FirstNotZero"),
        ({"starts_ns": [0], "rates_bps": [1e6, 1e6]}, "UnequalLengths"),
        ({"starts_ns": [0], "rates_bps": [-1.0]}, r"rates_bps\[0\]"),
        ({"starts_ns": [0], "rates_bps": [0.0]}, "NeverSends"),
        ({"starts_ns": [0, 20], "rates_bps": [1e6, 1e6]}, r"starts_ns\[1\]: NotAscending"),
    ],
)
def test_the_engine_refuses_traces_that_make_no_sense(changed: dict[str, list[float]], message: str) -> None:
    way = {"rate_trace": {**changed, "end_ns": 10}, "delay_ns": MS}
    link = {"name": "link", "forward": way, "reverse": {"delay_ns": MS}}
    config = {
        "duration_ns": 1000 * MS,
        "path": {"nodes": ["a", "b"], "links": [link]},
        "flows": [{"name": "flow", "variant": "reno"}],
    }
    with pytest.raises(ScenarioError, match=message):
        run_configurations([Configuration(config, 1, False)])
