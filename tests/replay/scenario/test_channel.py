"""Channels over time in scenarios: models and files become schedule and losses by the clock, and the engine obeys."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hindflight.channels.extraction.extract import extract
from hindflight.channels.formats import read_channel, write_channel
from hindflight.channels.intervals import State, tables
from hindflight.channels.models.synth import Extent, read_model, synthesise, write_tables
from hindflight.channels.trace import Trace, read_trace, write_trace
from hindflight.replay.experiment.engine_inputs import engine_config, plan_comparison
from hindflight.replay.experiment.experiment import load_traces
from hindflight.replay.experiment.run import Configuration, run_configurations
from hindflight.replay.scenario.loss_trace import loss_trace
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.toolkit.errors import HindflightError, ScenarioError
from tests.reference.link import LinkModel, bernoulli, fly
from tests.replay.scenario.test_scenario import GOOD, VARIANTS

SECOND = 10**9
MS = 10**6


def scenario(link: dict[str, Any], folder: Path = Path(), **changes: Any) -> Scenario:
    data = {**copy.deepcopy(GOOD), "duration": "20 s", "flow": {"receive_buffer": "1 MiB"}, **changes}
    data["path"] = ["sender", "receiver"]
    data["compare"] = {"variants": ["newreno", "cubic"], "seeds": 2}
    data["links"] = [{"name": "up", "rate": "2 Mbit/s", "delay": "20 ms", "queue": "50 pkts", **link}]
    return parse_scenario(data, "test.toml", VARIANTS, folder)


def configs(of: Scenario) -> list[dict[str, Any]]:
    return [engine_config(of, job, {}) for job in plan_comparison(of, ("newreno", "cubic"))]


def first_link(config: dict[str, Any]) -> dict[str, Any]:
    link: dict[str, Any] = config["path"]["links"][0]
    return link


def test_all_variants_of_a_seed_meet_the_same_street_in_both_directions() -> None:
    street = {"model": "street", "satellite": {"azimuth": 60.0, "elevation": 40.0}, "speed": "20 m/s"}
    made = configs(scenario({"channel": street}))
    assert len(made) == 4
    links = [first_link(config) for config in made]
    assert links[0] == links[2]  # the same seed, another variant
    assert links[0] != links[1]
    assert links[0]["forward"]["loss"] == links[0]["reverse"]["loss"]
    assert links[0]["forward"]["loss_applies_to"] == "all"
    assert {span["per"] for span in links[0]["forward"]["loss"]["spans"]} <= {None, 1.0}
    assert links[0]["forward"]["rate_bps"] == 2e6


def test_a_schedule_has_rate_delay_outage_and_hold() -> None:
    steps = [
        {"at": "0 s", "rate": "1 Mbit/s", "delay": "10 ms"},
        {"at": "5 s", "rate": "500 kbit/s", "gap": "1 s"},
        {"at": "9 s", "delay": "30 ms", "per": 0.25},
    ]
    lost = first_link(configs(scenario({"channel": {"model": "handover", "steps": steps}}))[0])["forward"]
    assert (lost["rate_bps"], lost["delay_ns"]) == (1e6, 10_000_000)
    assert lost["schedule"] == [
        {"at_ns": 0, "rate_bps": 1e6, "delay_ns": 10_000_000},
        {"at_ns": 5 * SECOND, "outage": True},
        {"at_ns": 6 * SECOND, "rate_bps": 5e5, "outage": False},
        {"at_ns": 9 * SECOND, "delay_ns": 30_000_000},
    ]
    assert lost["loss"] == {"kind": "timeline", "spans": [{"start_ns": 9 * SECOND, "per": 0.25, "ber": None}]}
    held = {"model": "handover", "steps": steps, "queued": "held"}
    schedule = first_link(configs(scenario({"channel": held}))[0])["forward"]["schedule"]
    assert {"at_ns": 5 * SECOND, "hold": True} in schedule


def delivered(of: Scenario) -> tuple[float, dict[str, Any]]:
    """Goodput and row of `runs` of the first job."""
    job = plan_comparison(of, ("newreno",))[0]
    runs = run_configurations([Configuration(engine_config(of, job, {}), job.seed, False)])["runs"].to_pylist()
    return runs[0]["goodput_bps"], runs[0]


def test_the_engine_obeys_rates_gaps_and_losses() -> None:
    half = {"model": "handover", "steps": [{"at": "0 s", "rate": "2 Mbit/s"}, {"at": "10 s", "rate": "1 Mbit/s"}]}
    goodput, _ = delivered(scenario({"channel": half}))
    assert goodput == delivered(scenario({"changes": [{"at": "10 s", "rate": "1 Mbit/s"}]}))[0]
    assert goodput < 0.85 * delivered(scenario({}))[0]
    steps = [{"at": "0 s"}, {"at": "8 s", "gap": "4 s"}]
    lost, lost_row = delivered(scenario({"channel": {"model": "handover", "steps": steps}}))
    held, held_row = delivered(scenario({"channel": {"model": "handover", "steps": steps, "queued": "held"}}))
    assert lost_row["outage_losses"] > 20
    assert held_row["outage_losses"] == 0
    assert lost < held < 2e6 * 16 / 20
    _, row = delivered(scenario({"channel": {"model": "handover", "steps": [{"at": "0 s", "per": 0.02}]}}))
    assert row["channel_losses"] / row["segments_out"] == pytest.approx(0.02, abs=0.01)


def test_what_the_first_state_does_not_say_is_as_the_link_has_it() -> None:
    steps = [{"at": "0 s"}, {"at": "15 s", "rate": "1 Mbit/s", "delay": "60 ms"}]
    words = first_link(configs(scenario({"channel": {"model": "handover", "steps": steps}}))[0])["forward"]
    assert (words["rate_bps"], words["delay_ns"]) == (2e6, 20_000_000)
    assert words["schedule"] == [{"at_ns": 15 * SECOND, "rate_bps": 1e6, "delay_ns": 60_000_000}]


def test_of_two_links_alive_the_old_one_serves_what_it_has_while_they_overlap() -> None:
    def handover(**step: Any) -> tuple[Scenario, dict[str, Any]]:
        steps = [{"at": "0 s", "rate": "2 Mbit/s"}, {"at": "8 s", "rate": "4 Mbit/s", "delay": "10 ms", **step}]
        of = scenario({"channel": {"model": "handover", "steps": steps}})
        return of, first_link(configs(of)[0])["forward"]

    both, words = handover(overlap="2 s")
    assert words["schedule"][1] == {
        "at_ns": 8 * SECOND, "rate_bps": 4e6, "delay_ns": 10_000_000, "overlap_ns": 2 * SECOND
    }  # fmt: skip
    assert delivered(both)[1]["outage_losses"] == 0
    # Cut at once, the old link loses what it has: the whole queue.
    assert delivered(handover(overlap="0 s")[0])[1]["outage_losses"] > 10
    assert delivered(handover()[0])[1]["outage_losses"] == 0


@pytest.mark.parametrize("in_order", [True, False])
def test_a_link_layer_recovers_losses_in_time_and_the_engine_adds_the_delay(in_order: bool) -> None:
    over = {"model": "gilbert_elliott_time", "mean_good": "90 ms", "mean_bad": "10 ms"}
    arq = {"model": "arq", "over": over, "retries": 20, "try_time": "5 ms", "in_order": in_order}
    bare = delivered(scenario({"loss": over}))[1]
    recovered = delivered(scenario({"loss": arq}))[1]
    assert bare["channel_losses"] / bare["segments_out"] == pytest.approx(0.1, abs=0.05)
    assert recovered["channel_losses"] == 0
    assert recovered["goodput_bps"] > 2 * bare["goodput_bps"]
    steps = {"model": "handover", "steps": [{"at": "0 s", "per": 0.3}]}
    link = scenario({"channel": {**arq, "over": steps}})
    assert first_link(configs(link)[0])["reverse"]["loss"]["over"]["spans"] == [
        {"start_ns": 0, "per": 0.3, "ber": None}
    ]
    row = delivered(link)[1]
    assert row["channel_losses"] == 0
    # A try in 0.7 fails on average 3 in 7 times, 5 ms each; both ways.
    clean = delivered(scenario({"queue": "1000 pkts", "rate": "200 Mbit/s"}))[1]
    slow = delivered(scenario({"queue": "1000 pkts", "rate": "200 Mbit/s", "channel": {**arq, "over": steps}}))[1]
    assert slow["srtt_mean_ns"] > clean["srtt_mean_ns"] + 2 * 5e6 * 3 / 7


def test_a_link_layer_outlasts_short_outages_in_a_replay_as_in_synthesis() -> None:
    gaps = [{"at": f"{at} s", "gap": "3 ms", "delay": "20 ms"} for at in range(1, 5)]
    over = {"model": "handover", "steps": [{"at": "0 s", "rate": "10 Mbit/s", "delay": "20 ms"}, *gaps]}
    bare = delivered(scenario({"channel": over}))[1]
    outlasting = {"model": "arq", "over": over, "retries": 7, "try_time": "1 ms"}
    recovered = delivered(scenario({"channel": outlasting}))[1]
    assert bare["outage_losses"] > 0
    assert recovered["outage_losses"] == recovered["channel_losses"] == 0
    giving_up = {**outlasting, "retries": 1}
    assert delivered(scenario({"channel": giving_up}))[1]["channel_losses"] > 0
    assert first_link(configs(scenario({"channel": outlasting}))[0])["forward"]["schedule"][0]["delay_ns"] == 20_000_000


def test_the_delay_added_by_a_link_layer_in_a_trace_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "arq.parquet"
    over = {"model": "bernoulli", "per": 0.3}
    model = read_model("arq", {"over": over, "retries": 2, "try_time": "50 ms", "in_order": False})
    synthesise(model, path, seed=1, extent=Extent(packets=5000))
    losses = loss_trace(read_trace(path), "arq")
    assert len(losses.late) == pytest.approx(5000 * 0.3, rel=0.1)
    assert {late["added_ns"] for late in losses.late.to_pylist()} == {50_000_000, 100_000_000}
    of = scenario({"loss": {"model": "trace", "file": "arq.parquet"}, "rate": "200 Mbit/s", "in_order": True})
    job = plan_comparison(of, ("newreno",))[0]
    rows = []
    for late in (losses.late, losses.late[:0]):
        config = engine_config(of, job, {"arq.parquet": replace(losses, late=late)})
        rows += run_configurations([Configuration(config, job.seed, False)])["runs"].to_pylist()
    assert rows[0]["srtt_mean_ns"] > rows[1]["srtt_mean_ns"] + 10_000_000
    assert rows[0]["channel_losses"] > 0


def test_a_trace_of_losses_is_read_in_any_format(tmp_path: Path) -> None:
    synthesise(read_model("bernoulli", {"per": 0.1}), tmp_path / "x.parquet", seed=1, extent=Extent(packets=500))
    trace = read_channel(tmp_path / "x.parquet")
    write_channel(trace, tmp_path / "x.csv")
    write_trace(trace, tmp_path / "x.channel")
    lost = loss_trace(trace, "x").lost
    assert 30 < len(lost) < 70
    for name in ("x.csv", "x.channel"):
        read = load_traces(scenario({"loss": {"model": "trace", "file": name}}), tmp_path)
        assert loss_trace(read[name], name).lost == lost


def test_a_file_is_played_from_its_first_state_and_again_past_its_end(tmp_path: Path) -> None:
    states = [
        State(100 * SECOND, 102 * SECOND, rate_bps=1e6, delay_ns=5_000_000),
        State(102 * SECOND, 103 * SECOND, rate_bps=1e6, delay_ns=5_000_000, per=1.0),
    ]
    write_tables(tables(states), tmp_path / "c.parquet", {})
    of = scenario({"channel": {"model": "file", "file": "c.parquet"}}, tmp_path)
    spans = first_link(configs(of)[0])["forward"]["loss"]["spans"]
    assert [(s["start_ns"] / SECOND, s["per"]) for s in spans[:4]] == [(2, 1.0), (3, None), (5, 1.0), (6, None)]
    assert len(spans) == 12
    goodput, row = delivered(of)
    assert 0 < goodput < 1e6 * 2 / 3
    assert row["channel_losses"] > 0


def changes_of(path: Path) -> dict[str, Any]:
    """The forward words of a link that plays `path` for 30 s."""
    of = scenario({"channel": {"model": "file", "file": path.name}}, path.parent, duration="30 s")
    forward: dict[str, Any] = first_link(configs(of)[0])["forward"]
    return forward


def test_an_outage_over_a_state_of_a_file_cuts_it(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(
        "t_ns,end_ns,lost,cause,rate_bps,delay_ns\n0,10000000000,0,,4000000,20000000\n2000000000,3000000000,1,outage,,\n"
    )
    outages = [(of["at_ns"] // SECOND, of["outage"]) for of in changes_of(path)["schedule"] if "outage" in of]
    # The file lasts ten seconds, though its last row ends after three.
    assert outages == [(2, True), (3, False), (12, True), (13, False), (22, True), (23, False)]


def test_an_outage_across_two_states_changes_the_delay_and_a_link_takes_over_once(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(
        "t_ns,end_ns,lost,cause,delay_ns,overlap_ns,per\n0,20000000000,0,,20000000,,0.5\n"
        "18000000000,22000000000,1,outage,,,\n20000000000,40000000000,0,,30000000,1000000,\n"
        "24000000000,25000000000,1,outage,,,\n"
    )
    forward = changes_of(path)
    assert forward["schedule"] == [
        {"at_ns": 0, "delay_ns": 20_000_000},
        {"at_ns": 18 * SECOND, "outage": True},
        {"at_ns": 20 * SECOND, "delay_ns": 30_000_000, "overlap_ns": 1_000_000},
        {"at_ns": 22 * SECOND, "outage": False},
        {"at_ns": 24 * SECOND, "outage": True},
        {"at_ns": 25 * SECOND, "outage": False},
    ]
    assert [(s["start_ns"] // SECOND, s["per"]) for s in forward["loss"]["spans"]] == [(0, 0.5), (20, None)]


def test_an_extracted_trace_is_out_as_long_as_it_says(tmp_path: Path) -> None:
    flown = fly(LinkModel(2e6, 200 * MS, 50, 20 * SECOND, bernoulli(0.0, 1), outage=(10 * SECOND, 11 * SECOND)))
    extraction = extract(flown.segments, flown.flows, flown.events, 1)
    path = tmp_path / "t.parquet"
    write_trace(Trace(extraction.channel), path)
    rows = read_trace(path).intervals().to_pylist()
    out = [row for row in rows if row["cause"] == "outage"]
    begin, end = min(row["t_ns"] for row in rows), max(row["end_ns"] for row in rows)
    changes = [(of["at_ns"], of["outage"]) for of in changes_of(path)["schedule"] if "outage" in of]
    once = [(out[0]["t_ns"] - begin, True), (out[-1]["end_ns"] - begin, False)]
    assert changes == once + [(at + end - begin, down) for at, down in once if at + end - begin < 30 * SECOND]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            "link,a2b,0,1000000000\nlink,a2b,10000000000,20000000000\n",
            "c.csv: interval 2 of a2b begins at 10000000000 ns, the previous one ends at 1000000000 ns",
        ),
        ("link,a2b,0,5\nsky,a2b,5,10\n", "c.csv: the intervals belong to several hops (link, sky)"),
        ("link,a2b,5,5\n", "c.csv: its intervals cover no time"),
    ],
)
def test_a_file_that_cannot_be_played_is_one_line(tmp_path: Path, rows: str, says: str) -> None:
    path = tmp_path / "c.csv"
    path.write_text(f"hop,direction,t_ns,end_ns\n{rows}")
    with pytest.raises(HindflightError) as caught:
        changes_of(path)
    assert says in str(caught.value)


def test_a_file_of_one_direction_describes_the_data_direction(tmp_path: Path) -> None:
    links = []
    for way in ("a2b", "b2a"):
        path = tmp_path / f"{way}.csv"
        path.write_text(f"direction,t_ns,end_ns,rate_bps,per\n{way},0,1000000000,3000000,0.25\n")
        of = scenario({"channel": {"model": "file", "file": path.name}}, tmp_path)
        links.append(first_link(configs(of)[0]))
    assert links[0] == links[1]
    assert links[0]["forward"]["rate_bps"] == links[0]["reverse"]["rate_bps"] == 3e6
    assert links[0]["forward"]["loss"]["spans"][0]["per"] == 0.25
    assert links[0]["reverse"]["loss"] == {"kind": "none"}


def test_a_file_is_read_once_for_all_seeds_and_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []

    def counted(path: Path) -> Trace:
        reads.append(path)
        return read_channel(path)

    monkeypatch.setattr("hindflight.replay.scenario.channel.read_channel", counted)
    file = tmp_path / "link.down"
    file.write_text("1\n2\n")
    of = scenario({"channel": {"model": "file", "file": "link.down"}}, tmp_path)
    made = configs(of)
    assert {first_link(config)["forward"]["rate_bps"] for config in made} == {12e6}
    assert len(made) == 4
    assert len(reads) == 2  # once for each direction
    file.write_text("1\n1\n")
    os.utime(file, ns=(0, file.stat().st_mtime_ns + SECOND))
    assert first_link(configs(of)[0])["forward"]["rate_bps"] == 24e6


def test_the_other_street_of_a_link_is_not_that_of_the_next_link() -> None:
    street = {"model": "street", "satellite": {"azimuth": 60.0, "elevation": 40.0}, "speed": "20 m/s"}
    open_sky = {**street, "heights": {"law": "constant", "value": "0.1 m"}}
    data = {**copy.deepcopy(GOOD), "duration": "60 s", "path": ["a", "b", "c"]}
    data["compare"] = {"variants": ["newreno"], "seeds": 1}
    link = {"rate": "2 Mbit/s", "delay": "20 ms", "queue": "50 pkts"}
    data["links"] = [
        {**link, "name": "up", "channel": {**open_sky, "other": street}},
        {**link, "name": "down", "channel": street},
    ]
    of = parse_scenario(data, "test.toml", VARIANTS, Path())
    config = configs(of)[0]
    up, down = (link["forward"]["loss"]["spans"] for link in config["path"]["links"])
    assert len(up) > 2
    assert len(down) > 2
    assert up != down


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ({"channel": {"model": "streat"}}, "did you mean 'street'"),
        ({"channel": {"model": "street"}}, "links[0].channel.street.satellite: this key is missing"),
        ({"channel": {"model": "uav", "share_zero": 2.0}}, "share_zero"),
        ({"channel": {"model": "uav"}, "loss": {"model": "ber", "ber": 1e-6}}, "leave out loss and changes"),
        ({"loss": {"model": "gilbert_elliott", "p": 0.1}}, "links[0].loss: give p and r"),
        ({"loss": {"model": "arq", "over": {"model": "uav"}}}, "loss.over says what a whole link is like"),
        ({"channel": {"model": "handover", "steps": [{"at": "0 s", "overlap": "1 s"}]}}, "no link before the first"),
        ({"channel": {"model": "slots", "gap": "1 s", "overlap": "1 s"}}, "not both"),
    ],
)
def test_what_makes_no_sense_is_one_line(link: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(link)
    assert says in str(caught.value)


def test_a_file_without_intervals_is_refused(tmp_path: Path) -> None:
    of = scenario({"channel": {"model": "file", "file": "none.parquet"}}, tmp_path)
    with pytest.raises(ScenarioError, match=r"links\[0\]\.channel: .*no such file"):
        configs(of)
