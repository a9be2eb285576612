"""Scenario files: a good one in full, and one line for every mistake."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hindflight.replay.scenario.model import Trace, load_scenario, parse_scenario
from hindflight.replay.scenario.queues import DropTail, Limit
from hindflight.toolkit.errors import ScenarioError

VARIANTS = ("newreno", "cubic", "sack")

GOOD: dict[str, Any] = {
    "name": "geo",
    "duration": "60 s",
    "path": ["sender", "relay", "receiver"],
    "links": [
        {
            "name": "up",
            "rate": "4 Mbit/s",
            "delay": "120 ms",
            "queue": "200 pkts",
            "loss": {"model": "trace", "file": "channel.parquet", "block": "100 pkts"},
        },
        {"name": "down", "rate": "4 Mbit/s", "delay": "120 ms"},
    ],
    "compare": {"variants": ["newreno"], "proxies": ["none", "relay"], "seeds": 3},
}

Mistake = Callable[[dict[str, Any]], object]

MISTAKES: list[tuple[Mistake, str]] = [
    (lambda d: d.update(duraton="1 s"), "duraton: unknown key; did you mean 'duration'?"),
    (lambda d: d["links"][0].update(qeue="4 pkts"), "links[0].qeue: unknown key; did you mean 'queue'?"),
    (lambda d: d["links"][0]["loss"].update(blok="4 pkts"), "links[0].loss.blok: unknown key; did you mean 'block'?"),
    (lambda d: d["links"][0].update(rate="4 Mbits"), "links[0].rate: unit 'Mbits' is not known"),
    (lambda d: d["links"][0].update(rate=4e6), "links[0].rate: write the rate with its unit"),
    (lambda d: d["links"][1].update(rate="-4 Mbit/s"), "links[1].rate: '-4 Mbit/s': a rate cannot be negative"),
    (lambda d: d["links"][1].update(rate="0 Mbit/s"), "links[1].rate: '0 Mbit/s' is out of range; at least 8 bit/s"),
    (
        lambda d: d["links"][0].update(loss={"model": "rain"}),
        "links[0].loss: unknown model 'rain'; allowed: none, bernoulli",
    ),
    (lambda d: d["links"][0].update(loss={"model": "bernoulli", "per": 1.5}), "links[0].loss.per: "),
    (lambda d: d["compare"].update(variants=["newrno"]), "compare.variants[0]: unknown variant 'newrno'; did you mean"),
    (lambda d: d["compare"].update(variants=[]), "compare.variants: names nothing; give at least one"),
    (lambda d: d["compare"].update(variants=["cubic", "cubic"]), "compare.variants: 'cubic' is there twice"),
    (lambda d: d["compare"].update(proxies=[]), "compare.proxies: names nothing"),
    (lambda d: d["compare"].update(seeds="3"), "compare.seeds: "),
    (lambda d: d["compare"].update(first_seed=10**24), "compare.first_seed: "),
    (lambda d: d["links"][0].update(loss={"model": "bernoulli", "per": "0.1"}), "links[0].loss.per: "),
    (lambda d: d["links"][0].update(name="up link"), "links[0].name: 'up link' is no name"),
    (lambda d: d["links"][0].update(delay="9e9 h"), "links[0].delay: '9e9 h' is out of range; at most"),
    (lambda d: d["links"][0].update(changes=[{"at": "1 s"}]), "links[0].changes[0]: changes nothing"),
    (
        lambda d: d["links"][0].update(queue={"kind": "codl"}),
        "links[0].queue: unknown kind 'codl'; did you mean 'codel'?",
    ),
    (lambda d: d["links"][0].update(queue={"limit": "3 pkts"}), "links[0].queue: it needs a kind, as in"),
    (
        lambda d: d["links"][0].update(loss={"model": "bernouli", "per": 0.1}),
        "links[0].loss: unknown model 'bernouli'; did you mean 'bernoulli'?",
    ),
    (
        lambda d: d.update(flow={"application": {"kind": "page"}}),
        "flow.application: unknown kind 'page'; did you mean 'pages'?",
    ),
    (
        lambda d: d.update(flow={"profile": "linx"}),
        "flow.profile: 'linx' is not allowed; did you mean 'linux'?",
    ),
    (lambda d: d.update(flow={"dscp": 64}), "flow.dscp: 64 is out of range; at most 63"),
    (lambda d: d.update(flow={"retry_limit": 3.5}), "flow.retry_limit: 3.5 is not a whole number"),
    (lambda d: d.update(flow={"pacing": 1}), "flow.pacing: 1 is neither true nor false"),
    (lambda d: d.update(flow={"start": "60 s"}), "flow.start: not before the end of the run"),
    (lambda d: d.update(path=["a"]), "path: 1 given, at least 2 needed"),
    (lambda d: d.update(path="a"), "path: 'a' is not a list"),
    (lambda d: d.update(flow=3), "flow: 3 is not a table"),
    (lambda d: d.update(name=3), "name: 3 is not a string"),
    (lambda d: d.update(flow={"initial_window": "0 pkts"}), "'0 pkts' is out of range; at least 1 pkt"),
    (lambda d: d.update(flow={"ecn": True, "ecn_beta": float("nan")}), "flow.ecn_beta: nan is out of range; at most 1"),
    (
        lambda d: d.update(datagrams=[{"name": "u", "rate": "1 kbit/s", "packet": "28 B"}]),
        "packet: '28 B' is out of range; at least 29 B",
    ),
    (lambda d: d.update(keep={"serie": "none"}), "keep.serie: unknown key; did you mean 'series'?"),
    (lambda d: d.update(keep={"series": "all"}), "keep.series: 'all' is not allowed; allowed: 'segments'"),
    (lambda d: d.update(keep={"samples": 10}), 'keep: samples needs series = "states"'),
    (lambda d: d.update(keep={"series": "states", "samples": 0}), "keep.samples: 0 is out of range; at least 1"),
    (lambda d: d.update(keep={"series": "none", "runs": "all"}), 'keep: runs = "all" contradicts series = "none"'),
    (
        lambda d: d["links"][0].update(changes=[{"at": "2 s", "outage": True}, {"at": "1 s", "outage": False}]),
        "links[0]: changes[1].at is earlier",
    ),
    (
        lambda d: d.update(flow={"profile": "bsd"}),
        "flow.profile: 'bsd' is not allowed; allowed: 'rfc', 'linux', 'ns2' or 'windows'",
    ),
    (lambda d: d.update(flow={"receive_buffer": "2 kB"}), "flow: receive_buffer holds less than two segments"),
    (lambda d: d["compare"].update(proxies=["moon"]), "compare.proxies[0]: 'moon' is neither a [[proxy]] nor a node"),
    (lambda d: d["compare"].update(proxies=["receiver"]), "compare.proxies[0]: 'receiver' is neither a [[proxy]]"),
    (lambda d: d["compare"].update(seeds=-1), "compare.seeds: "),
    (lambda d: d.pop("links"), "links: this key is missing"),
    (lambda d: d["links"].pop(), "links: 1 given, 2 needed"),
    (lambda d: d.update(path=["a", "b", "a"]), "path: a node is listed twice"),
    (lambda d: d.update(path=["a", "b", "b"]), "path: a node is listed twice"),
    (
        lambda d: d.update(path=["a", "b", "a"], flows=[{"name": "x", "variant": "cubic", "from": "b", "to": "a"}]),
        "path: a node is listed twice",
    ),
    (lambda d: d.update(duration="0 s"), "duration: '0 s' is out of range; at least 1 ms"),
    (lambda d: d.update(duration="721 h"), "duration: '721 h' is out of range; at most 720 h"),
    (
        lambda d: d.update(proxy=[{"name": "relay", "node": "relay", "variant": "cubik"}]),
        "proxy[0].variant: unknown variant 'cubik'; did you mean 'cubic'?",
    ),
]


def test_reads_a_whole_file_into_base_units() -> None:
    scenario = parse_scenario(GOOD, "geo.toml", VARIANTS)
    assert scenario.duration == 60_000_000_000
    up = scenario.links[0]
    assert (up.rate, up.delay, up.queue) == (4e6, 120_000_000, DropTail(limit=Limit(pkts=200)))
    assert isinstance(up.loss, Trace)
    assert (up.loss.file, up.loss.block) == ("channel.parquet", 100)
    assert up.backward.rate == 4e6
    assert up.backward.loss.model == "none"
    assert scenario.flow.size is None


@pytest.mark.parametrize(("mistake", "says"), MISTAKES, ids=[says[:40] for _, says in MISTAKES])
def test_names_the_key_and_what_is_allowed(mistake: Mistake, says: str) -> None:
    data = copy.deepcopy(GOOD)
    mistake(data)
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(data, "geo.toml", VARIANTS)
    message = str(caught.value)
    assert says in message
    assert all(line.startswith("geo.toml: ") for line in message.splitlines())


def test_files_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no such scenario file"):
        load_scenario(tmp_path / "none.toml", VARIANTS)
    broken = tmp_path / "broken.toml"
    broken.write_text("name = \n")
    with pytest.raises(ScenarioError, match="not a TOML file"):
        load_scenario(broken, VARIANTS)
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="not a TOML file"):
        load_scenario(broken, VARIANTS)


def test_what_follows_from_an_error_is_not_counted_as_another() -> None:
    data = copy.deepcopy(GOOD)
    data["links"][0]["queue"] = {"kind": "codel", "target": "100 ms", "interval": "50 ms"}
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(data, "geo.toml", VARIANTS)
    assert str(caught.value) == "geo.toml: links[0].queue: interval is shorter than target"
    data["links"][1]["delay"] = 5
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(data, "geo.toml", VARIANTS)
    assert str(caught.value).splitlines() == [
        "geo.toml: links[0].queue: interval is shorter than target",
        'geo.toml: links[1].delay: write the time with its unit, as in "125 ms"; got 5',
    ]


def test_every_error_is_shown_up_to_ten() -> None:
    data = copy.deepcopy(GOOD)
    data["flow"] = {"mss": 5, "dscp": 99, "start": "1e30 s"}
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(data, "geo.toml", VARIANTS)
    keys = [line.split(": ")[1] for line in str(caught.value).splitlines()]
    assert sorted(keys) == ["flow.dscp", "flow.mss", "flow.start"]
    data["flow"] = {f"key{i}": 1 for i in range(14)}
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(data, "geo.toml", VARIANTS)
    assert len(caught.value.others) == 10
    assert caught.value.others[-1] == "geo.toml: 4 more errors"


def test_errors_between_tables_are_shown_together() -> None:
    data = copy.deepcopy(GOOD)
    data["compare"] = {**data["compare"], "variants": ["cubik"], "proxies": ["none", "mars"]}
    data["flow"] = {**data.get("flow", {}), "start": "20 h"}
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(data, "geo.toml", VARIANTS)
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["compare.proxies[1]", "flow.start", "compare.variants[0]"]


DURATIONS = [
    ("duration",),
    ("links", 0, "delay"),
    ("links", 0, "changes", 0, "at"),
    ("links", 0, "jitter", "spread"),
    ("links", 0, "queue", "target"),
    ("flow", "start"),
    ("flow", "min_rto"),
    ("flow", "clock_granularity"),
    ("flow", "delayed_ack_timeout"),
    ("flow", "freeze_warning"),
    ("flow", "application", "write_every"),
    ("flow", "application", "startup"),
    ("datagrams", 0, "stop"),
    ("datagrams", 0, "on"),
]


@pytest.mark.parametrize("path", DURATIONS, ids=lambda path: ".".join(map(str, path)))
def test_every_duration_has_a_limit_that_is_named(path: tuple[str | int, ...]) -> None:
    data = copy.deepcopy(GOOD)
    data["links"][0] |= {
        "changes": [{"at": "1 s", "delay": "5 ms"}],
        "jitter": {"kind": "uniform", "spread": "1 ms"},
        "queue": {"kind": "codel"},
    }
    data["flow"] = {"application": {"kind": "stream", "rate": "1 Mbit/s"}}
    data["datagrams"] = [{"name": "u", "packet": "200 B", "rate": "64 kbit/s", "on": "1 s", "off": "1 s"}]
    parse_scenario(data, "geo.toml", VARIANTS)
    place: Any = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = "1e30 s"
    with pytest.raises(ScenarioError, match=r"'1e30 s' is out of range; at most \S+ (h|s|ms)"):
        parse_scenario(data, "geo.toml", VARIANTS)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        (
            'loss = { model = "arq", over = { model = "trace", file = "x.parquet" } }',
            "links[0].loss.over: model 'trace' is not allowed here; allowed: none, ",
        ),
        (
            'channel = { model = "arq", over = { model = "file", file = "x.parquet" } }',
            "links[0].channel.arq.over: no model 'file'; there are bernoulli, ",
        ),
        ('channel = { model = "street_canyon" }', "links[0].channel: no model 'street_canyon'; did you mean 'street'?"),
    ],
)
def test_a_model_that_cannot_stand_there_is_named_once(tmp_path: Path, link: str, message: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        'name = "t"\nduration = "10 s"\npath = ["a", "b"]\n[compare]\nvariants = ["cubic"]\n'
        f'[[links]]\nname = "l"\nrate = "1 Mbit/s"\ndelay = "10 ms"\n{link}\n'
    )
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, ("cubic",))
    said = str(caught.value).removeprefix(f"{path}: ")
    assert said.startswith(message)
    assert said.count("links[0]") == 1
