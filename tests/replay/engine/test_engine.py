"""The engine through its native face: tables of the schema, equal bytes for equal seeds, errors that name the key."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hindflight import _native
from hindflight.toolkit.schema import TABLES, arrow_schema, conform

LABELS = {"scenario", "compared_variant", "proxy", "purpose", "channel_mode", "role"}
"""Columns of `runs` that the Python side adds."""


def config(**changes: Any) -> dict[str, Any]:
    """Return a GEO-like path of two hops and one flow; `changes` go into the flow."""
    hop = {"rate_bps": 1e6, "delay_ns": 125_000_000, "queue": {"kind": "drop_tail", "limit_pkts": 50}}
    loss = {"kind": "bernoulli", "per": 0.005}
    return {
        "duration_ns": 30_000_000_000,
        "path": {
            "nodes": ["ground", "satellite", "aircraft"],
            "links": [
                {"name": "up", "forward": {**hop, "loss": loss}, "reverse": hop},
                {"name": "down", "forward": hop, "reverse": hop},
            ],
        },
        "flows": [{"name": "flow", "variant": "cubic", **changes}],
    }


def run(
    *configs: dict[str, Any],
    seeds: range = range(1, 2),
    threads: int = 1,
    recorded: bool = False,
    segments: bool = True,
    samples: int | None = None,
) -> dict[str, pa.Table]:
    """Run every configuration with every seed and return the tables that have rows."""
    pairs = [(json.dumps({"config": c}), seed) for c in configs for seed in seeds]
    jobs = [(text, seed, run_id, recorded) for run_id, (text, seed) in enumerate(pairs, 1)]
    tables = _native.replay(jobs, threads=threads, segments=segments, samples=samples)
    return {name: pa.concat_tables([pa.table(b) for b in batches]) for name, batches in tables.items() if batches}


def as_bytes(tables: dict[str, pa.Table]) -> dict[str, bytes]:
    out = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        out[name] = sink.getvalue().to_pybytes()
    return out


def test_recorded_tables_are_those_of_the_schema() -> None:
    tables = run(config(), recorded=True)
    for name in ("segments", "flows", "events", "instruments"):
        assert tables[name].num_rows > 0, name
        assert conform(name, tables[name]).schema.names == arrow_schema(name).names


def test_runs_has_every_column_but_the_labels() -> None:
    runs = run(config())["runs"]
    expected = [c.name for c in TABLES["runs"].columns if c.name not in LABELS]
    assert sorted(runs.schema.names) == sorted(expected)


def test_samples_are_states_of_the_full_series_and_bounded_however_long_the_run() -> None:
    proxied = config(proxies=[{"node": "satellite"}])
    for seconds in (30, 300):
        longer = {**proxied, "duration_ns": seconds * 1_000_000_000}
        full = [row for row in run(longer, recorded=True)["instruments"].to_pylist() if row["source"] == "replay"]
        sampled = run(longer, recorded=True, segments=False, samples=50)
        assert set(sampled) == {"runs", "instruments"}
        for leg in (0, 1):
            whole = [row for row in full if row["leg"] == leg]
            rows = [row for row in sampled["instruments"].to_pylist() if row["leg"] == leg]
            assert 25 <= len(rows) <= 51 < len(whole)
            assert all(row in whole for row in rows)
            assert (rows[0], rows[-1]) == (whole[0], whole[-1])
            # Of 50 samples one is the last: there are 49 intervals, and the first state of each is kept. At every
            # point the state that holds differs from the full series' by less than an interval.
            interval_ns = longer["duration_ns"] // 49 + 1
            for point in range(0, longer["duration_ns"], longer["duration_ns"] // 50):
                then = [row["t_ns"] for row in whole if row["t_ns"] <= point]
                kept = [row["t_ns"] for row in rows if row["t_ns"] <= point]
                assert len(kept) >= bool(then)
                assert not then or then[-1] - kept[-1] < interval_ns


def test_states_without_segments_are_those_of_the_full_series() -> None:
    full = run(config(), recorded=True)["instruments"]
    states = run(config(), recorded=True, segments=False)
    assert set(states) == {"runs", "instruments"}
    assert states["instruments"].equals(full.filter(pc.equal(full["source"], "replay")))


def test_no_samples_at_all_and_samples_of_segments_are_refused() -> None:
    with pytest.raises(ValueError, match="zero"):
        run(config(), recorded=True, segments=False, samples=0)
    with pytest.raises(ValueError, match="samples: only without segments"):
        run(config(), recorded=True, samples=10)


def test_a_fixed_window_stays_what_it_is() -> None:
    fixed = config(variant="sack", stack={"fixed_window_pkts": 20})
    cwnd = run(fixed, recorded=True, segments=False)["instruments"]["cwnd_bytes"]
    assert set(cwnd.to_pylist()) == {20 * 1448}
    with pytest.raises(ValueError, match="fixed_window_pkts"):
        run(config(stack={"fixed_window_pkts": 1}))


def test_the_error_of_the_job_that_failed_is_raised_and_not_that_of_a_job_that_it_stopped(tmp_path: Path) -> None:
    (tmp_path / "2-ground.pcap").mkdir()
    lasting, short = ({**config(), "duration_ns": seconds * 10**9} for seconds in (100_000, 1))
    jobs = [(json.dumps({"config": c}), 1, run_id, True) for run_id, c in enumerate((lasting, short), 1)]
    with pytest.raises(IsADirectoryError):
        _native.replay(jobs, threads=2, segments=False, samples=1, captures=tmp_path)


def test_equal_seeds_give_equal_bytes_whatever_the_threads() -> None:
    configs = [config(variant=variant) for variant in ("newreno", "sack", "cubic")]
    one = as_bytes(run(*configs, seeds=range(1, 5), threads=1, recorded=True))
    two = as_bytes(run(*configs, seeds=range(1, 5), threads=2, recorded=True))
    assert one == two
    assert one == as_bytes(run(*configs, seeds=range(1, 5), threads=1, recorded=True))


def test_batches_give_the_tables_of_one_call_in_their_order() -> None:
    texts = [json.dumps({"config": config(variant=variant)}) for variant in ("newreno", "sack", "cubic")]
    jobs = [(text, seed, 10 * number + seed, seed == 1) for number, text in enumerate(texts) for seed in range(1, 4)]
    whole = _native.replay(jobs, threads=2)
    found: list[dict[str, list[Any]]] = []
    _native.replay_batches(iter([(jobs[:4], []), ([], []), (jobs[4:], [])]), found.append, threads=2)
    assert [sum(len(part) for part in tables["runs"]) for tables in found] == [4, 0, 5]
    for name in ("runs", "segments", "flows", "events", "instruments"):
        parts = [pa.table(part) for tables in found for part in tables[name]]
        assert pa.concat_tables(parts).equals(pa.concat_tables([pa.table(part) for part in whole[name]])), name


@pytest.mark.parametrize("fails", ["batches", "done", "configuration"])
def test_what_fails_while_a_batch_runs_ends_it(fails: str) -> None:
    endless, short = (
        json.dumps({"config": {**config(), "duration_ns": seconds * 10**9}}) for seconds in (20 * 86_400, 1)
    )

    def batches() -> Iterator[tuple[list[tuple[str, int, int, bool]], list[Any]]]:
        if fails == "done":
            yield [(short, 1, 1, False)], []
        yield [(endless, 1, 2, False)], []
        if fails == "batches":
            raise LookupError(fails)
        if fails == "configuration":
            yield [("{}", 1, 3, False)], []

    def done(_tables: dict[str, list[Any]]) -> None:
        raise LookupError(fails)

    begin = time.monotonic()
    with pytest.raises(ValueError if fails == "configuration" else LookupError):
        _native.replay_batches(batches(), done, threads=2)
    assert time.monotonic() - begin < 5


def proxied(variant: str, onward: str) -> dict[str, Any]:
    """Return a path whose first hop neither loses nor queues, with a proxy behind it."""
    path = config(variant=variant, proxies=[{"node": "satellite", "variant": onward}])
    first = {"delay_ns": 100_000}
    path["path"]["links"][0] = {"name": "access", "forward": first, "reverse": first}
    return path


def test_jobs_whose_runs_are_the_same_have_the_rows_of_their_own_runs() -> None:
    configs = [proxied(variant, "hybla") for variant in ("sack", "newreno", "cubic", "bbr")]
    together = run(*configs, seeds=range(1, 3), threads=2)["runs"].to_pylist()
    alone = [row for each in configs for row in run(each, seeds=range(1, 3))["runs"].to_pylist()]
    assert [{**row, "run_id": 0} for row in together] == [{**row, "run_id": 0} for row in alone]
    assert [row["variant"] for row in together[::2]] == ["sack", "newreno", "cubic", "bbr"]


def test_seeds_differ_and_jobs_keep_their_order() -> None:
    runs = run(config(), seeds=range(1, 9), threads=2)["runs"]
    assert runs["run_id"].to_pylist() == list(range(1, 9))
    assert runs["seed"].to_pylist() == list(range(1, 9))
    assert len(set(runs["delivered_bytes"].to_pylist())) > 4


def test_record_agrees_with_the_row_of_runs() -> None:
    tables = run(config(variant="sack"), recorded=True)
    row = tables["runs"].to_pylist()[0]
    data = tables["segments"].filter(pc.greater(tables["segments"]["payload_bytes"], 0))
    assert data.num_rows == row["segments_out"]
    assert pc.sum(data["retransmission"]).as_py() == row["retransmissions"]
    losses = tables["events"].filter(pc.equal(tables["events"]["kind"], "loss"))
    by_cause = {v["values"]: v["counts"] for v in pc.value_counts(losses["cause"].cast(pa.string())).to_pylist()}
    assert by_cause.get("channel", 0) == row["channel_losses"]
    assert by_cause.get("queue", 0) == row["queue_losses"]
    flow = tables["flows"].to_pylist()[0]
    assert flow["a2b_data_segments"] == row["segments_out"]
    assert flow["vantage"] == "sender"


def test_a_split_flow_is_recorded_leg_by_leg() -> None:
    proxied = config(proxies=[{"node": "satellite"}])
    tables = run(proxied, recorded=True)
    assert sorted(set(tables["segments"]["leg"].to_pylist())) == [0, 1]
    assert tables["flows"].num_rows == 1
    row = tables["runs"].to_pylist()[0]
    assert row["proxy_held_max_bytes"] > 0
    assert row["goodput_bps"] > run(config())["runs"]["goodput_bps"][0].as_py()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variant": "cubik"}, 'flows[0].variant: UnknownVariant { name: "cubik", nearest: "cubic"'),
        ({"size_bytes": 0}, "flows[0].size_bytes: OutOfRange { value: Integer(0), min: Integer(1)"),
        ({"colour": "red"}, 'flows[0].colour: Malformed { detail: "unknown field `colour`'),
        ({"size_bytes": "big"}, 'flows[0].size_bytes: Malformed { detail: "invalid type'),
        ({"stack": {"min_rto_ns": -1}}, 'flows[0].stack.min_rto_ns: Malformed { detail: "invalid value'),
    ],
)
def test_errors_name_the_key_path(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is what is tested
        run(config(**change))
    assert message in str(caught.value)


def test_ctrl_c_stops_a_long_run() -> None:
    endless = {**config(), "duration_ns": 20 * 86_400 * 10**9}
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    begin = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(endless, seeds=range(1, 4), threads=2)
    assert time.monotonic() - begin < 5


def test_variants_tell_source_year_and_parameters() -> None:
    cubic = next(variant for variant in _native.variants() if variant.name == "cubic")
    assert (cubic.family, cubic.source, cubic.year) == ("loss", "RFC 9438", 2023)
    assert cubic.summary
    assert cubic.profiles == ["rfc", "ns2"]
    assert not cubic.needs_forecast
    beta = next(parameter for parameter in cubic.parameters if parameter.name == "beta")
    assert (beta.default, beta.allowed, beta.unit, beta.source) == ("0.7", "0.1..0.99", "", "RFC 9438 §4.6")
    assert beta.meaning == "What a loss leaves of the window."


def test_a_parameter_of_the_variant_changes_its_runs() -> None:
    gentle, harsh = config(), config()
    gentle["flows"][0] |= {"variant": "cubic", "params": {"beta": 0.9}}
    harsh["flows"][0] |= {"variant": "cubic", "params": {"beta": 0.2}}
    runs = run(gentle, harsh)["runs"]
    assert runs["delivered_bytes"][0].as_py() > runs["delivered_bytes"][1].as_py()


def test_variants_are_listed_once_each_and_run() -> None:
    names = [variant.name for variant in _native.variants()]
    assert len(names) == len(set(names))
    runs = run(*[config(variant=name) for name in names])["runs"]
    assert runs["variant"].to_pylist() == names
    assert min(runs["delivered_bytes"].to_pylist()) > 0
