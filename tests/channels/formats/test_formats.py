"""Formats of other tools: round trips, reported omissions, and one line for invalid files."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hindflight.channels.formats import read_channel, write_channel
from hindflight.channels.formats.netem import TABLE_UNIT, distribution
from hindflight.channels.trace import Trace
from hindflight.toolkit.errors import ChannelError
from hindflight.toolkit.schema import table_from_rows

SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "public" / "links"
MS = 1_000_000
LOG = "dir,t_arr_ns,plen,size,fate\n"


def packets(lost: set[int], count: int = 200) -> Trace:
    rows: list[dict[str, object]] = [
        {
            "kind": "packet", "hop": "link", "direction": "a2b", "position": i, "t_ns": i * MS, "size_bytes": 1500,
            "lost": i in lost, "cause": "channel" if i in lost else "none", "known": True,
        }
        for i in range(count)
    ]  # fmt: skip
    return Trace(table_from_rows("channel", rows))


def states(*values: tuple[int, int, float | None, int | None, float | None]) -> Trace:
    """Intervals of (start ms, end ms, rate, delay ms, loss)."""
    rows: list[dict[str, object]] = [
        {
            "kind": "interval", "hop": "link", "direction": "a2b", "t_ns": start * MS, "end_ns": end * MS,
            "lost": per == 1, "cause": "channel" if per == 1 else "none", "rate_bps": rate,
            "delay_ns": None if delay is None else delay * MS, "per": 0.0 if per == 1 else per, "known": True,
        }
        for start, end, rate, delay, per in values
    ]  # fmt: skip
    return Trace(table_from_rows("channel", rows))


def wrong(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ChannelError) as caught:
        read_channel(path)
    return str(caught.value).replace(f"{tmp_path}/", "")


def equal(one: pa.Table, other: pa.Table) -> bool:
    return bool(one.to_pylist() == other.to_pylist())


def test_csv_contains_the_whole_table(tmp_path: Path) -> None:
    trace = packets({3, 4, 77})
    both = pa.concat_tables([trace.channel, states((0, 5, 1e6 / 3, 20, 0.125), (5, 9, 0.0, None, 1)).channel])
    path = tmp_path / "a.csv"
    assert write_channel(Trace(both), path) == []
    assert equal(read_channel(path).channel, both)


def test_formulas_in_csv_names_are_escaped_for_spreadsheets(tmp_path: Path) -> None:
    hops = ["=1+1", "'=1", "@a", "-1.5", "link"]
    rows = packets(set(), len(hops)).channel.to_pylist()
    channel = table_from_rows("channel", [row | {"hop": hop} for row, hop in zip(rows, hops, strict=True)])
    write_channel(Trace(channel), tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text()
    assert ",'=1+1," in text
    assert ",''=1," in text
    assert ",-1.5," in text
    assert equal(read_channel(tmp_path / "a.csv").channel, channel)


def test_parquet_is_detected_by_its_first_bytes(tmp_path: Path) -> None:
    trace = packets({3})
    for name in ("a.csv", "a.xyz"):
        write_channel(trace, tmp_path / name, "parquet")
        assert equal(read_channel(tmp_path / name).channel, trace.channel)
    assert wrong(tmp_path, "b.parquet", "t_ns\n").startswith("b.parquet: is not a Parquet file")


def test_csv_needs_only_five_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "t_ns,position,lost,delay_ns,rate_bps\n0,,0,20000000,1000000\n10,0,0,,\n20,1,1,,\n500,,0,21000000,2000000.5\n"
    )
    with pytest.raises(ChannelError, match="line 5: the last interval needs end_ns"):
        read_channel(path)
    path.write_text(
        "t_ns,position,lost,delay_ns,rate_bps,end_ns\n0,,0,20000000,1000000,\n10,0,0,,,\n20,1,1,,,\n500,,,,2000000.5,900\n"
    )
    trace = read_channel(path)
    assert trace.packets()["lost"].to_pylist() == [False, True]
    assert trace.intervals().select(["t_ns", "end_ns", "delay_ns", "rate_bps"]).to_pylist() == [
        {"t_ns": 0, "end_ns": 500, "delay_ns": 20_000_000, "rate_bps": 1e6},
        {"t_ns": 500, "end_ns": 900, "delay_ns": None, "rate_bps": 2000000.5},
    ]


@pytest.mark.parametrize("name", ["Verizon-LTE-short.down.gz", "starlink-leocc-bw-head.txt.gz"])
def test_recorded_mahimahi_traces_round_trip_except_for_time_0(tmp_path: Path, name: str) -> None:
    recorded = SHARED / name
    if not recorded.exists():
        pytest.skip(f"{recorded} is not here")
    text = gzip.decompress(recorded.read_bytes()).decode()
    # The second file is the head of a longer one, cut in the midst of its last line.
    text = text[: text.rindex("\n") + 1]
    first, second, again = (tmp_path / part for part in ("a.down", "a.parquet", "b.down"))
    first.write_text(text)
    write_channel(read_channel(first), second)
    said = write_channel(read_channel(second), again)
    # A chance at 0 is one at the end of the round before.
    stamps = text.splitlines()
    zeros = stamps.count("0")
    assert again.read_text().splitlines() == [*stamps[zeros:], *[stamps[-1]] * zeros]
    assert said == ["estimates, unknowns, counts and source of the trace are omitted"]


def test_mahimahi_opportunities_give_the_rate_of_the_previous_millisecond(tmp_path: Path) -> None:
    path = tmp_path / "a.up"
    path.write_text("1\n1\n2\n2\n4\n")
    rates = read_channel(path).intervals().select(["t_ns", "end_ns", "rate_bps"]).to_pylist()
    assert rates == [
        {"t_ns": 0, "end_ns": 2 * MS, "rate_bps": 24e6},
        {"t_ns": 2 * MS, "end_ns": 3 * MS, "rate_bps": 0.0},
        {"t_ns": 3 * MS, "end_ns": 4 * MS, "rate_bps": 12e6},
    ]


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("1\n", [(0, 1, 12e6)]),
        ("0\n2\n", [(0, 1, 0.0), (1, 2, 24e6)]),
        ("31622400000\n", [(0, 31622399999, 0.0), (31622399999, 31622400000, 12e6)]),
    ],
    ids=["one line is 12 Mbit/s", "0 is the end of the round before", "a year is two intervals"],
)
def test_last_mahimahi_time_is_the_duration(tmp_path: Path, text: str, rates: list[tuple[int, int, float]]) -> None:
    path = tmp_path / "a.up"
    path.write_text(text)
    rows = read_channel(path).intervals().to_pylist()
    assert [(row["t_ns"] // MS, row["end_ns"] // MS, row["rate_bps"]) for row in rows] == rates


def test_slow_rate_gives_an_opportunity_per_serialised_packet(tmp_path: Path) -> None:
    # 1.2 Mbit/s: 1500 octets in 10 ms, so an opportunity every 10 ms.
    path = tmp_path / "a.down"
    said = write_channel(states((0, 35, 1.2e6, 7, None)), path)
    assert path.read_text() == "10\n20\n30\n"
    assert said == ["delay_ns of 1 rows is omitted"]


def test_mahimahi_omits_idle_time_at_the_end_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "a.down"
    for last in ((4, 7, 0.0, None, None), (4, 7, 12e6, None, 1)):
        said = write_channel(states((0, 4, 12e6, None, None), last), path)
        assert path.read_text() == "1\n2\n3\n4\n"
        assert any("the last 0.003 s, in which nothing is sent, are omitted" in sentence for sentence in said)


def test_theaterq_round_trips_and_reports_rounding(tmp_path: Path) -> None:
    trace = states((0, 5, 1e6, 20, 0.125), (5, 9, 2e6, 21, None), (9, 12, 2e6, 21, 1))
    path = tmp_path / "a.tq"
    assert write_channel(trace, path) == ["the trace has no queue limit: 1000 packets are written"]
    assert path.read_text().splitlines()[0] == "5000,20000000,1000000,536870912,1000"
    again = read_channel(path).intervals().to_pylist()
    for got, row in zip(again, trace.intervals().to_pylist(), strict=True):
        assert {**got, "per": round(got["per"] or 0.0, 9)} == {**row, "per": row["per"] or 0.0}
    assert read_channel(path).estimate("queue_limit_pkts").value == 1000  # type: ignore[union-attr]


def test_extended_theaterq_reports_unsupported_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.tq"
    path.write_text("1000,5000000,100,1000000,0,50,4,0,1\n")
    trace = read_channel(path)
    assert trace.unknowns == tuple(
        f"{what} of 1 states is not read: the channel table has no column for it."
        for what in ("jitter", "duplication", "route")
    )


def test_theaterq_trace_may_last_a_year(tmp_path: Path) -> None:
    path = tmp_path / "a.tq"
    path.write_text("31622399999999,1,1,0,5\n1,1,1,0,5\n")
    assert read_channel(path).intervals()["end_ns"].to_pylist()[-1] == 366 * 86_400 * 10**9


def test_maximum_values_of_a_column_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f't_ns,position,size_bytes,record,hop\n{2**63 - 1},0,{2**32 - 1},{2**64 - 1},"a, b"\n')
    (row,) = read_channel(path).packets().to_pylist()
    assert (row["t_ns"], row["size_bytes"], row["record"]) == (2**63 - 1, 2**32 - 1, 2**64 - 1)
    assert row["hop"] == "a, b"


@pytest.mark.parametrize("name", ["a.tcl", "a.cc"])
def test_lists_of_lost_packets_round_trip(tmp_path: Path, name: str) -> None:
    lost = {0, 5, 6, 7, *range(30, 60)}
    said = write_channel(packets(lost), tmp_path / name)
    assert said[0] == "140 packets after the last loss are omitted: a list ends with its last loss"
    trace = read_channel(tmp_path / name)
    again = trace.packets()
    assert set(again.filter(again["lost"])["position"].to_pylist()) == lost
    assert len(again) == 60
    assert len(trace.unknowns) == 2


def test_netem_loss_models_are_reported_in_scenario_syntax(tmp_path: Path) -> None:
    path = tmp_path / "a.sh"
    path.write_text(
        "# my link\ntc qdisc add dev eth0 root netem delay 100ms 10ms distribution normal \\\n"
        "  loss gemodel 1% 10% 70% 0.1% rate 2mbit limit 50 duplicate 1%\n"
    )
    trace = read_channel(path)
    row = trace.intervals().to_pylist()[0]
    assert (row["delay_ns"], row["rate_bps"]) == (100 * MS, 2e6)
    # Shares 1/11 bad, 10/11 good.
    assert row["per"] == pytest.approx(0.7 / 11 + 0.001 * 10 / 11)
    assert trace.estimate("queue_limit_pkts").value == 50  # type: ignore[union-attr]
    said = " ".join(trace.unknowns)
    assert 'loss = { model = "gilbert_elliott", p = 0.01, r = 0.1, h = 0.3, k = 0.999 }' in said
    assert "`duplicate 1%` is not read" in said
    assert "`distribution normal` is not read" in said


def test_netem_four_state_mean_equals_that_of_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "a.sh"
    path.write_text("tc qdisc add dev eth0 root netem loss state 1% 20% 30% 40% 0.5%\n")
    per = read_channel(path).intervals()["per"][0].as_py()
    step = np.array([[0.985, 0, 0.01, 0.005], [0, 0.6, 0.4, 0], [0.2, 0.3, 0.5, 0], [1, 0, 0, 0]])
    share = np.linalg.matrix_power(step, 10_000)[0]
    assert per == pytest.approx(share[2] + share[3])


def test_netem_round_trips_with_a_fitted_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lost: set[int] = set()
    bad = False
    for i in range(20_000):
        bad = rng.random() < (0.9 if bad else 0.005)
        if bad:
            lost.add(i)
    rows = [packets(lost, 20_000).channel, states((0, 20_000, 3e6, 125, None)).channel]
    trace = Trace(pa.concat_tables(rows))
    path = tmp_path / "a.netem"
    said = write_channel(trace, path)
    assert any(
        "the loss sequence is omitted: netem gets the fitted model gilbert_elliott, which fits" in s for s in said
    )
    assert re.search(r"netem delay 125\.000000ms rate 3000000bit loss gemodel 0\.\d+% 1\d\.\d+% ", path.read_text())
    row = read_channel(path).intervals().to_pylist()[0]
    assert (row["delay_ns"], row["rate_bps"]) == (125 * MS, 3e6)
    assert row["per"] == pytest.approx(len(lost) / 20_000, rel=0.02)


def test_netem_distribution_table_reproduces_the_quantiles(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    delays = rng.gamma(4, 5e6, 5000)
    mean, spread = float(delays.mean()), float(delays.std())
    table = distribution(delays, np.ones(5000), mean, spread)
    assert len(table) == 4096
    back = mean + spread * table / TABLE_UNIT
    for share in (0.05, 0.5, 0.95):
        assert np.quantile(back, share) == pytest.approx(np.quantile(delays, share), abs=spread / 50)
    trace = states(*((i, i + 1, None, int(d / MS) + 1, None) for i, d in enumerate(delays[:500])))
    path = tmp_path / "a.netem"
    write_channel(trace, path)
    text = path.read_text()
    words = [int(w) for line in text.split("END'\n")[1].split("\nEND")[0].splitlines() for w in line.split()]
    assert len(words) == 4096
    assert words == sorted(words)
    assert "distribution hindflight" in text


def test_omissions_of_a_format_are_reported(tmp_path: Path) -> None:
    both = Trace(pa.concat_tables([packets({3}).channel, states((0, 20, 12e6, 5, None)).channel]))
    assert write_channel(both, tmp_path / "a.down") == [
        "200 packets, 1 of them lost, are omitted",
        "delay_ns of 1 rows is omitted",
    ]
    said = write_channel(both, tmp_path / "a.tcl")
    assert said[0] == "1 intervals of rate, delay and outage are omitted"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.down", "3\n2\n", "a.down: line 2: 2 ms is earlier than the previous line (3 ms): the trace is not sorted"),
        ("a.down", "1\n-2\n", "a.down: line 2: the time is -2; it cannot be negative"),
        ("a.down", "1\nnan\n", "a.down: line 2: the time is 'nan', not a whole number"),
        ("a.down", "0\n0\n", "a.down: all delivery opportunities are at 0 ms: the trace has no duration"),
        ("a.down", "\n\n", "a.down: is empty"),
        ("a.csv", "t_ns,position\n5,0\n4,1\n", "a.csv: line 3: t_ns is 4, earlier than the previous packet"),
        ("a.csv", "t_ns,position\n5,0\n6,2\n", "a.csv: line 3: position is 2, expected 1: positions count 0, 1, 2, …"),
        ("a.csv", "t_ns,position,rate_bps\n5,0,NaN\n", "a.csv: line 2: rate_bps is NaN; it must be finite"),
        ("a.csv", "t_ns,end_ns,per\n5,9,1.5\n", "a.csv: line 2: per is 1.5; a probability is at most 1"),
        ("a.csv", "t_ns,position\n-5,0\n", "a.csv: line 2: t_ns is -5; it cannot be negative"),
        ("a.csv", "t_ns,position\n", "a.csv: is empty"),
        ("a.csv", "t_ns,end_ns,per,ber\n0,5,0,\n5,9,0.1,1e-9\n", "a.csv: interval 2 has both per and ber"),
        ("a.csv", "t_ns,end_ns\n0,6\n5,9\n", "a.csv: intervals 1 and 2 overlap, so the state of the link is ambiguous"),
        ("a.csv", "t_ns,end_ns,rate\n", "a.csv: line 1: unknown column 'rate'; allowed: kind"),
        ("a.csv", "t_ns,end_ns\n5\n", "a.csv: line 2: 1 fields, 2 in the header"),
        ("a.csv", "t_ns,t_ns\n5,6\n", "a.csv: line 1: the column t_ns is repeated"),
        ("a.csv", "t_ns,kind\n5,pakket\n", "a.csv: line 2: kind is 'pakket'; allowed: packet, interval"),
        ("a.csv", "t_ns,direction\n5,ab\n", "a.csv: line 2: direction is 'ab'; allowed: a2b, b2a"),
        ("a.csv", "t_ns,position,cause\n5,0,rain\n", "a.csv: line 2: cause is 'rain'; allowed: none, channel, queue"),
        ("a.csv", f"t_ns,position\n{2**63},0\n", f"a.csv: line 2: t_ns is {2**63}; at most {2**63 - 1}"),
        ("a.csv", "t_ns,size_bytes\n5,4294967296\n", "a.csv: line 2: size_bytes is 4294967296; at most 4294967295"),
        ("a.csv", f"t_ns,position\n5,{2**64}\n", f"a.csv: line 2: position is {2**64}; at most {2**64 - 1}"),
        ("a.csv", 't_ns,hop\n5,"a\nb"\n6,c\n', "a.csv: line 2: a quoted field continues after the end of the line"),
        ("a.csv", 't_ns,hop\n5,"a\n', "a.csv: line 2: is not valid CSV: unexpected end of data"),
        ("a.log", "t_arr_ns,fate,plen,size\n", "a.log: line 1: the column dir is missing"),
        ("a.log", f"{LOG}data,5,9,9,delivered\ndata,4,9,9,delivered\n", "a.log: line 3: t_arr_ns is 4, earlier than"),
        ("a.tcl", f"$em droplist 3 {2**32 - 1}\n", "a.tcl: line 1: a packet's number is 4294967295; at most 9999999"),
        ("a.log", f"{LOG}data,5,9,ten,delivered\n", "a.log: line 2: size is 'ten', not a whole number"),
        ("a.log", f"{LOG}data,5,9,{2**32},delivered\n", f"a.log: line 2: size is {2**32}; at most {2**32 - 1}"),
        ("a.log", f"{LOG}data,{2**63},9,9,delivered\n", f"a.log: line 2: t_arr_ns is {2**63}; at most {2**63 - 1}"),
        ("a.log", f"{LOG}data,5,9\n", "a.log: line 2: 3 fields, 5 in the header"),
        ("a.tq", f"5,{2**63},1,0,5\n", f"a.tq: line 1: latency is {2**63}; at most {2**63 - 1}"),
        ("a.tq", f"{2**64},1,1,0,5\n", f"a.tq: line 1: keep is {2**64}; at most {2**63 - 1}"),
        ("a.tq", "9999999999999999,1,1,0,5\n", "a.tq: line 1: keep is 9999999999999999 µs: the trace is longer"),
        ("a.tq", "31622400000000,1,1,0,5\n1,1,1,0,5\n", "a.tq: line 2: keep is 1 µs: the trace is longer than a year"),
        ("a.tq", "0,1,1,0,5\n", "a.tq: line 1: keep is 0; it must be at least 1 µs"),
        ("a.tq", "1_000,1,1,0,5\n", "a.tq: line 1: keep is '1_000', not a whole number"),
        ("a.csv", "t_ns,end_ns,rate_bps\n0,5,1e14\n", "a.csv: line 2: rate_bps is 1e14; at most 1e+13"),
        ("a.tq", "5,1,1,4294967296,5\n", "a.tq: line 1: loss is 4294967296; at most 4294967295 (100 %)"),
        ("a.tq", "5,1,1\n", "a.tq: line 1: 3 fields; a simple line has 5, an extended one 9"),
        ("a.tcl", "$em droplist 3 4 4\n", "a.tcl: line 1: packet 4 is repeated"),
        ("a.cc", "em->SetList ({1,\n x});\n", "a.cc: line 2: a packet's number is 'x', not a whole number"),
        ("a.sh", "tc qdisc add dev eth0 root netem dealy 5ms\n", "a.sh: line 1: netem has no option 'dealy' here"),
        ("a.sh", "tc qdisc add dev eth0 root netem delay 5\n", "a.sh: line 1: delay: '5' is not a time"),
        ("a.sh", "tc qdisc add dev eth0 root netem loss 150%\n", "a.sh: line 1: loss: 150% is more than 100 %"),
        ("a.sh", "tc qdisc add dev eth0 root netem delay 1e400ms\n", "a.sh: line 1: delay: 1e400ms is out of range"),
        ("a.sh", "tc qdisc add dev eth0 root netem delay 1e300ms\n", "a.sh: line 1: delay: 1e300ms is out of range"),
        ("a.sh", "tc qdisc add dev eth0 root netem limit 1e400\n", "a.sh: line 1: limit: 1e400 is out of range"),
        ("a.sh", "tc qdisc add dev eth0 root netem delay '5ms\n", "a.sh: line 1: is no command: No closing quotation"),
        ("a.xyz", "hello\n", "a.xyz: the format is not known from the suffix or the first line"),
    ],
)  # fmt: skip
def test_invalid_files_give_one_line_with_the_record(tmp_path: Path, name: str, text: str, message: str) -> None:
    assert wrong(tmp_path, name, text).startswith(message)


def outages(rate_bps: float | None) -> Trace:
    """Return a state of 40 ms with an outage, which may have a rate, in it, and a state after it."""
    rows: list[dict[str, object]] = [
        {
            "kind": "interval", "hop": "link", "direction": "a2b", "t_ns": start * MS, "end_ns": end * MS,
            "lost": rate == rate_bps, "cause": "outage" if rate == rate_bps else "none", "rate_bps": rate,
            "delay_ns": None if rate == rate_bps else 5 * MS, "known": True,
        }
        for start, end, rate in ((0, 40, 12e6), (10, 20, rate_bps), (40, 50, rate_bps), (50, 60, 24e6))
    ]  # fmt: skip
    return Trace(table_from_rows("channel", rows))


@pytest.mark.parametrize("rate_bps", [None, 48e6])
def test_outage_has_no_mahimahi_opportunities(tmp_path: Path, rate_bps: float | None) -> None:
    said = write_channel(outages(rate_bps), tmp_path / "a.down")
    assert "2 outages are written as times without delivery opportunities" in said
    # 12 Mbit/s are a packet per ms, 24 Mbit/s two.
    opportunities = [*range(1, 11), *range(21, 41), *(ms for ms in range(51, 61) for _ in range(2))]
    assert (tmp_path / "a.down").read_text().split() == [str(ms) for ms in opportunities]
    write_channel(outages(rate_bps), tmp_path / "a.tq")
    back = read_channel(tmp_path / "a.tq").channel.to_pylist()
    assert [(row["t_ns"] // MS, row["end_ns"] // MS, row["lost"]) for row in back] == [
        (0, 10, False), (10, 20, True), (20, 40, False), (40, 50, True), (50, 60, False),
    ]  # fmt: skip
    assert [row["rate_bps"] for row in back if not row["lost"]] == [12e6, 12e6, 24e6]


@pytest.mark.parametrize("name", ["a.down", "a.tq"])
def test_trace_with_a_gap_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        ChannelError, match="interval 2 of a2b begins at 5000000 ns, the previous one ends at 1000000 ns"
    ):
        write_channel(states((0, 1, 1e6, 1, None), (5, 6, 1e6, 1, None)), tmp_path / name)


def test_trace_without_rates_cannot_be_written_as_mahimahi(tmp_path: Path) -> None:
    with pytest.raises(ChannelError, match="has no rate over time"):
        write_channel(packets({1}), tmp_path / "a.down")
    with pytest.raises(ChannelError, match="interval 2 has no rate"):
        write_channel(states((0, 1, 1e6, 1, None), (1, 2, None, 1, None)), tmp_path / "a.down")
    with pytest.raises(ChannelError, match=re.escape("unknown suffix; known: .parquet, .csv")):
        write_channel(packets({1}), tmp_path / "a.xyz")
    with pytest.raises(ChannelError, match="unknown format 'mahimah'; did you mean 'mahimahi'"):
        write_channel(packets({1}), tmp_path / "a.down", "mahimah")


@pytest.mark.parametrize("rate_bps", [None, 48e6])
def test_netem_means_exclude_outages_with_a_note(tmp_path: Path, rate_bps: float | None) -> None:
    said = write_channel(outages(rate_bps), tmp_path / "a.netem")
    assert "outages of 0.02 s are omitted: netem has no times" in said
    # 30 ms of 12 Mbit/s and 10 ms of 24 Mbit/s.
    assert "rate 15000000bit" in (tmp_path / "a.netem").read_text()


def test_netem_reports_time_without_a_loss_rate(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {
            "kind": "interval", "hop": "link", "direction": "a2b", "t_ns": start * MS, "end_ns": (start + 10) * MS,
            "lost": per == 1, "cause": "channel" if per == 1 else "none", "per": None if per == 1 else per,
            "known": True,
        }
        for start, per in ((0, 0.1), (10, 1), (20, None))
    ]  # fmt: skip
    said = write_channel(Trace(table_from_rows("channel", rows)), tmp_path / "a.netem")
    assert "for 0.01 s the trace has no loss rate: netem applies its mean there too" in said
    assert "loss random 55%" in (tmp_path / "a.netem").read_text()


def test_error_list_reports_losses_in_outages(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {
            "kind": "packet", "hop": "link", "direction": "a2b", "t_ns": n, "position": n, "lost": n > 0,
            "cause": ("none", "channel", "outage", "outage")[n], "known": True,
        }
        for n in range(4)
    ]  # fmt: skip
    for name in ("a.tcl", "a.cc"):
        said = write_channel(Trace(table_from_rows("channel", rows)), tmp_path / name)
        assert any(line.startswith("2 of the 3 packets were lost in outages") for line in said), said
        assert read_channel(tmp_path / name).channel["lost"].to_pylist() == [False, True, True, True]
