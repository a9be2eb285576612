"""Errors in every table of a scenario file, each reported in one line: the file, the key, and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hindflight.replay.controllers.base import variant_names
from hindflight.replay.experiment.engine_inputs import plan_comparison
from hindflight.replay.experiment.experiment import load_traces
from hindflight.replay.experiment.run import check_jobs
from hindflight.replay.scenario.flows import Flow
from hindflight.replay.scenario.model import load_scenario
from hindflight.toolkit.errors import ScenarioError

SCENARIO = """name = "x"
duration = "5 s"
path = ["a", "b"]
[[links]]
name = "l"
rate = "2 Mbit/s"
delay = "10 ms"
{link}
[flow]
{flow}
{extra}
[compare]
{compare}
"""
USUAL = {"link": "", "flow": "", "extra": "", "compare": 'variants = ["newreno"]\nseeds = 1'}

SLIPS = [
    ("link", 'dealy="1 ms"', "links[0].dealy: unknown key; did you mean 'delay'?"),
    (
        "link",
        "mtu=1",
        "links[0].mtu: unknown key; allowed: name, from, to, rate, rate_file, delay, jitter, queue, loss, rever",
    ),
    ("flow", "zzz=1", f"flow.zzz: unknown key; allowed: {len(Flow.model_fields)} keys, see docs/scenario.md"),
    ("link", 'rate_file="x"', "links[0]: rate and rate_file both give the rate; leave one out"),
    ("link", 'loss={model="trace",file="no.parquet"}', "links[0].loss.file: no such file no.parquet"),
    ("link", 'loss={model="trace"}', "links[0].loss.file: this key is missing"),
    ("link", 'loss="1 %"', "links[0].loss: '1 %' is not a table"),
    ("link", 'loss={model="bernoulli",per=nan}', "links[0].loss.per: nan is not a finite number"),
    ("link", 'loss={model="ber",ber=-1e-9}', "links[0].loss.ber: -1e-09 is out of range; at least 0"),
    ("link", 'loss={model="gilbert_elliott",p=0.1}', "links[0].loss: give p and r, or mean_loss and mean_burst"),
    ("link", 'loss={model="gilbert_elliott",p=0.1,r=0.1,hh=1}', "links[0].loss.hh: unknown key; did you mean 'h'?"),
    (
        "link",
        'loss={model="gilbert_elliott_time",mean_good=1,mean_bad="1 s"}',
        'links[0].loss.mean_good: write the time with its unit, as in "125 ms"; got 1',
    ),
    ("link", 'loss={model="markov",transitions=[],loss=[]}', "links[0].loss.transitions: 0 given, at least 1 needed"),
    ("link", 'queue="-1 pkts"', "links[0].queue: '-1 pkts': a number of packets cannot be negative or infinite"),
    (
        "link",
        'queue="5 ms"',
        "links[0].queue: unit 'ms' is not known in '5 ms'; a number of packets has one of pkts, pkt",
    ),
    ("link", "queue=100", 'links[0].queue: write the number of packets with its unit, as in "50 pkts"; got 100'),
    ("link", 'queue="1e12 pkts"', "links[0].queue: '1e12 pkts' is out of range; at most 100000000 pkts"),
    ("link", "queue={kind=3}", 'links[0].queue: it needs a kind, as in { kind = "drop_tail" }'),
    ("link", 'queue={kind="codel",target="0 ms"}', "links[0].queue.target: '0 ms' is out of range; at least 1 us"),
    ("link", 'queue={kind="pie",alpha=-1}', "links[0].queue.alpha: -1 is out of range; at least 0"),
    ("link", 'queue={kind="priority",classes=[[64]]}', "links[0].queue.classes[0][0]: 64 is out of range; at most 63"),
    ("link", 'queue={kind="priority",classes=[[1],[1]]}', "links[0].queue: classes name DSCP 1 twice"),
    ("link", 'queue={kind="priority",classes="ef"}', "links[0].queue.classes: 'ef' is not a list; write it in [ ]"),
    ("link", "changes=[{outage=true}]", "links[0].changes[0].at: this key is missing"),
    ("link", 'changes=[{at="1 s",outage="yes"}]', "links[0].changes[0].outage: 'yes' is neither true nor false"),
    (
        "link",
        'changes=[{at="2 s",outage=true},{at="1 s",outage=false}]',
        "links[0]: changes[1].at is earlier than the one before it",
    ),
    ("link", 'jitter={kind="uniform",spread="0 ms"}', "links[0].jitter.spread: '0 ms' is out of range; at least 1 ns"),
    (
        "link",
        'jitter={kind="uniform",sprad="1 ms"}',
        "links[0].jitter.sprad: unknown key; did you mean 'spread'?",
    ),
    ("link", "in_order=1", "links[0].in_order: 1 is neither true nor false"),
    ("link", 'channel={model="file",file="no.csv"}', "links[0].channel: no.csv: there is no such file"),
    (
        "link",
        'channel={model="stret"}',
        "links[0].channel: no model 'stret'; did you mean 'street'?; there are street, lms, signal, trac",
    ),
    (
        "link",
        'channel={model="bernoulli",per=0.1}\nloss={model="bernoulli",per=0.1}',
        "links[0].channel: no model 'bernoulli'; there are street, lms, signal, track, uav, handover, sl",
    ),
    ("flow", 'size="0 B"', "flow.size: '0 B' is out of range; at least 1 B"),
    ("flow", "size=1000", 'flow.size: write the size with its unit, as in "5 MB"; got 1000, or "greedy"'),
    ("flow", 'size="gredy"', 'flow.size: \'gredy\' is not a size; write it as in "5 MB", or "greedy"'),
    ("flow", 'size="1e30 B"', "flow.size: '1e30 B' is out of range; at most 1073741824 GiB"),
    ("flow", 'mss="0 B"', "flow.mss: '0 B' is out of range; at least 1 B"),
    (
        "flow",
        'mss="65000 B"\nheaders="120 B"\ninitial_window="2 pkts"\nreceive_buffer="64 KiB"',
        "flow: receive_buffer holds less than two segments",
    ),
    ("flow", 'initial_window="0.4 pkts"', "flow.initial_window: '0.4 pkts' is out of range; at least 1 pkt"),
    ("flow", 'initial_ssthresh="1 pkt"', "flow.initial_ssthresh: '1 pkt' is out of range; at least 2 pkts"),
    ("flow", 'min_rto="-1 s"', "flow.min_rto: '-1 s': a time cannot be negative or infinite"),
    ("flow", 'max_rto="500 ms"', "flow.max_rto: 500 ms is less than min_rto, which is 1 s (rfc)"),
    ("flow", 'clock_granularity="2 s"', "flow.clock_granularity: '2 s' is out of range; at most 1 s"),
    ("flow", 'delayed_ack_timeout="600 ms"', "flow.delayed_ack_timeout: '600 ms' is out of range; at most 500 ms"),
    ("flow", "quickack_segments=-1", "flow.quickack_segments: -1 is out of range; at least 0"),
    ("flow", "retry_limit=256", "flow.retry_limit: 256 is out of range; at most 255"),
    ("flow", "ecn=true\necn_beta=2", "flow.ecn_beta: 2 is out of range; at most 1"),
    ("flow", 'ecn="on"', "flow.ecn: 'on' is neither true nor false"),
    ("flow", 'nagle="of"', "flow.nagle: 'of' is not allowed; did you mean 'off'?"),
    ("flow", 'profile="Linux"', "flow.profile: 'Linux' is not allowed; did you mean 'linux'?"),
    ("flow", 'slow_start="hystart++"', "flow.slow_start: 'hystart++' is not allowed; did you mean 'hystart'?"),
    ("flow", 'read_rate="1 bit/s"', "flow.read_rate: '1 bit/s' is out of range; at least 8 bit/s"),
    ("flow", "application=3", "flow.application: 3 is not a table"),
    (
        "flow",
        'application={kind="on_off",rate="1 Mbit/s",on="1 s",off="1 s",spread="normal"}',
        "flow.application.spread: 'normal' is not allowed",
    ),
    (
        "flow",
        'application={kind="on_off",rate="1 Mbit/s",on="0 s",off="1 s"}',
        "flow.application.on: '0 s' is out of range; at least 1 ns",
    ),
    (
        "flow",
        'application={kind="pages",page="1 kB",think="1 s",request="2 kB"}',
        "flow.application.request: '2 kB' is out of range; at most 1400 B",
    ),
    ("flow", 'application={kind="writes",at=[],sizes=[]}', "flow.application.at: 0 given, at least 1 needed"),
    (
        "flow",
        'application={kind="stream",rate="1 Mbit/s",start_up="1 s"}',
        "flow.application.start_up: unknown key; did you mean 'startup'?",
    ),
    ("extra", '[[flows]]\nvariant="reno"', "flows[0].name: this key is missing"),
    ("extra", '[[flows]]\nname="u"', "flows[0].variant: this key is missing"),
    (
        "extra",
        '[[flows]]\nname="u"\nvariant="reno"\n[[flows]]\nname="u"\nvariant="reno"',
        "flows[1].name: 'u' is there twice ('flow' is the flow under test)",
    ),
    (
        "extra",
        '[[flows]]\nname="flow"\nvariant="reno"',
        "flows[0].name: 'flow' is there twice ('flow' is the flow under test)",
    ),
    ("extra", '[[flows]]\nname="u"\nvariant="reno"\nfrom="c"', "flows[0].from: 'c' is not a node of the path"),
    (
        "extra",
        '[[flows]]\nname="u"\nvariant="reno"\nfrom="b"\nto="b"',
        "flows[0].to: 'b' is the node that sends",
    ),
    ("extra", '[[flows]]\nname="u"\nvariant="reno"\nstart="5 s"', "flows[0].start: not before the end of the run"),
    (
        "extra",
        '[[flows]]\nname="u"\nvariant="reno"\nmin_rto="100 s"',
        "flows[0].min_rto: 100 s is more than max_rto, which is 60 s (rfc)",
    ),
    (
        "extra",
        '[[flows]]\nname="u"\nvariant="reno"\n[[flows]]\nname="v"\nvariant="sack"\nrecovery="prr"',
        'flows[1].recovery: variant "sack" determines its own recovery',
    ),
    (
        "extra",
        '[[flows]]\nname="u"\nvariant="renoo"',
        "flows[0].variant: unknown variant 'renoo'; did you mean 'reno'?",
    ),
    ("extra", '[[datagrams]]\nname="u"\npacket="100 B"', "datagrams[0].rate: this key is missing"),
    (
        "extra",
        '[[datagrams]]\nname="u"\npacket="100 B"\nrate="1 kbit/s"\nfrom="a"\nto="a"',
        "datagrams[0].to: 'a' is the node that sends",
    ),
    (
        "extra",
        '[[datagrams]]\nname="u"\npacket="70 kB"\nrate="1 kbit/s"',
        "datagrams[0].packet: '70 kB' is out of range; at most 65535 B",
    ),
    (
        "extra",
        '[[datagrams]]\nname="u"\npacket="100 B"\nrate="1 kbit/s"\nstart="2 s"\nstop="1 s"',
        "datagrams[0]: stop is not later than start",
    ),
    ("compare", 'variants=["reno"]\nproxies=["a"]', "compare.proxies[0]: 'a' is neither a [[proxy]] nor a node"),
    ("compare", 'variants="reno"', "compare.variants: 'reno' is not a list; write it in [ ]"),
    ("compare", "variants=[1]", "compare.variants[0]: 1 is not a string"),
    ("compare", 'variants=["reno"]\nseeds=-1', "compare.seeds: -1 is out of range; at least 0"),
    ("compare", 'variants=["reno"]\nseeds=10000000', "compare.seeds: 10000000 is out of range; at most 100000"),
    ("compare", 'variants=["reno"]\nseeds=1.5', "compare.seeds: 1.5 is not a whole number"),
    (
        "compare",
        'variants=["reno"]\nseeds=0',
        "compare.seeds: 0 seeds run nothing without a trace to replay; at least 1",
    ),
    (
        "compare",
        'variants=["reno"]\nfirst_seed=99999999999999999999999999',
        "compare.first_seed: 99999999999999999999999999 is out of range; at most 9223372036854775808",
    ),
    ("extra", '[keep]\nseries="states"\nsamples=1e3', "keep.samples: 1000.0 is not a whole number"),
    ("extra", '[keep]\nruns="al"', "keep.runs: 'al' is not allowed; did you mean 'all'?"),
    ("extra", "[variants.x]\nbeta=0.5", "variants.x.variant: this key is missing"),
    ("extra", '[variants.x]\nvariant="cubik"', "variants.x.variant: unknown variant 'cubik'; did you mean 'cubic'?"),
    ("extra", '[variants.x]\nvariant="cubic"\nbeta=nan', "variants.x.beta: nan is not between 0.1 and 0.99"),
    ("extra", '[variants.x]\nvariant="cubic"\nbeta=inf', "variants.x.beta: inf is not between 0.1 and 0.99"),
    (
        "extra",
        '[variants.x]\nvariant="cubic"\nbeta=2',
        "variants.x.beta: 2 is not between 0.1 and 0.99 (cubic under rfc)",
    ),
    (
        "extra",
        '[variants.x]\nvariant="cubic"\nbeta=true',
        "variants.x.beta: must be a number between 0.1 and 0.99 (cubic under rfc)",
    ),
    (
        "extra",
        '[variants.x]\nvariant="cubic"\nbeta="0.5"',
        "variants.x.beta: must be a number between 0.1 and 0.99 (cubic under rfc)",
    ),
    ("extra", '[variants.x]\nvariant="cubic"\nbeta=[0.5]', "variants.x.beta: [0.5] is neither a number nor a text"),
    (
        "extra",
        '[variants.x]\nvariant="cubic"\nfast_convergence="yes"',
        "variants.x.fast_convergence: must be true or false (cubic under rfc)",
    ),
    (
        "extra",
        '[variants.x]\nvariant="scps-tp"\nrate=5e6',
        'variants.x.rate: write the rate with its unit, as in "1 Mbit/s"; got 5000000.0',
    ),
    (
        "extra",
        '[variants.x]\nvariant="scps-tp"\nrate="5 bit/s"',
        "variants.x.rate: 5 bit/s is not between 1 kbit/s and 1000 Gbit/s (scps-tp under rfc)",
    ),
    (
        "extra",
        '[variants.x]\nvariant="scps-tp"\nrate="5 Mb"',
        "variants.x.rate: unit 'Mb' is not known in '5 Mb'; a rate has one of bit/s, kbit/s, Mbit/s, Gbi",
    ),
    ("extra", '[variants.x]\nvariant="vegas"\nalpha=9\nbeta=3', "variants.x.alpha: must be below beta"),
    ("extra", '[variants.cubic]\nvariant="cubic"', "variants.cubic: there is a variant of that name; choose another"),
    (
        "extra",
        '[variants."a b"]\nvariant="cubic"',
        "variants.a b: 'a b' is no name; use 1 to 64 letters, digits and _ . + -",
    ),
    ("extra", '[variants.x]\nvariant="cubic"\n[variants.y]\nvariant="x"', "variants.y.variant: unknown variant 'x'"),
    (
        "extra",
        '[captured]\ninput="x"\nsha256="12"\nflow_id=1',
        "captured.sha256: '12' is no SHA-256; 64 digits of 0-9 a-f",
    ),
    ("extra", '[comparre]\nvariants=["reno"]', "comparre: unknown key; did you mean 'compare'?"),
    (
        "flow",
        "start=1979-05-27",
        'flow.start: write the time with its unit, as in "125 ms"; got datetime.date(1979, 5, 27)',
    ),
    ("link", 'changes=[{at="800 h",outage=true}]', "links[0].changes[0].at: '800 h' is out of range; at most 720 h"),
]


def _write(path: Path, **parts: str) -> Path:
    if "[variants.x]" in parts.get("extra", ""):
        parts["compare"] = 'variants = ["x"]\nseeds = 1'
    path.write_text(SCENARIO.format(**{**USUAL, **parts}))
    return path


def _check(path: Path) -> None:
    scenario = load_scenario(path, variant_names())
    load_traces(scenario, path.parent)
    check_jobs(scenario, plan_comparison(scenario, (*scenario.compare.variants, *scenario.variants)), {})


@pytest.mark.parametrize(("place", "text", "says"), SLIPS, ids=[f"{place}: {text}" for place, text, _ in SLIPS])
def test_one_line_has_file_key_and_what_is_allowed(tmp_path: Path, place: str, text: str, says: str) -> None:
    path = _write(tmp_path / "s.toml", **{place: text})
    with pytest.raises(ScenarioError) as caught:
        _check(path)
    first, *others = str(caught.value).replace(f"{tmp_path}/", "").splitlines()
    assert first.startswith(f"s.toml: {says}")
    assert all(line.startswith("s.toml: ") for line in others)


def test_the_scenario_without_the_errors_is_valid(tmp_path: Path) -> None:
    _check(_write(tmp_path / "s.toml"))


@pytest.mark.parametrize(
    "text",
    ["name = = 3", "seeds = " + "9" * 5000, "a = " + "[" * 3000 + "]" * 3000],
    ids=["no value", "digits", "deep"],
)
def test_what_is_no_toml_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=r"s\.toml: not a TOML file: ") as caught:
        load_scenario(path, variant_names())
    assert "\n" not in str(caught.value)
