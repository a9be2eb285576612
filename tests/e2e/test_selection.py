"""`flows`, `segments` and `events`: which rows the conditions choose, and their forms; `info` of every kind of input.

The commands run in this process: there are many of them.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import hindflight as hf
from hindflight.cli.app import main
from tests.e2e.conftest import FLOW, ROOT

CAPTURE, LOG = FLOW / "snd.pcap.xz", FLOW / "tcpinfo.csv.xz"
TABLES = ("flows", "segments", "events")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two captures of one connection, so two flows."""
    folder = tmp_path_factory.mktemp("selection") / "ws"
    captures = [str(CAPTURE), str(FLOW / "rcv.pcap.xz")]
    assert main(["ingest", *captures, "-w", str(folder)]) == 0
    return folder


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main([str(word) for word in arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


@pytest.mark.parametrize("table", TABLES)
def test_csv_and_json_have_every_row_and_column(
    table: str, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hf.open(workspace) as tables:
        expected = tables.arrow(table)
    rows = list(csv.DictReader(io.StringIO(printed(capsys, table, workspace, "--csv"))))
    document = json.loads(printed(capsys, table, workspace, "--json"))
    assert len(rows) == len(document[table]) == expected.num_rows > 0
    assert list(rows[0]) == list(document[table][0]) == expected.column_names
    keys = ("flow_id", "t_ns", "record", "seq") if table == "segments" else ("flow_id",)
    for key in keys:
        assert sorted(int(row[key]) for row in rows) == sorted(expected[key].to_pylist())
        assert sorted(row[key] for row in document[table]) == sorted(expected[key].to_pylist())


@pytest.mark.parametrize("table", TABLES)
def test_the_hint_of_a_refused_expression_shows_one_that_is_accepted(
    table: str, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([table, str(workspace), "--where", "payload bytes > 0"]) == 2
    hint = capsys.readouterr().err
    shown = hint.split('in SQL: "')[1].split('"')[0]
    assert json.loads(printed(capsys, table, workspace, "--where", shown, "--json"))[table]


def test_segments_are_in_the_order_of_the_capture(workspace: Path) -> None:
    chosen = hf.segments(workspace, flow=2, where="payload_bytes > 0")
    records = chosen["record"].to_list()
    assert records == sorted(records)
    assert set(chosen["flow_id"]) == {2}
    assert chosen["payload_bytes"].min() > 0  # type: ignore[operator]


def test_an_expression_chooses_what_a_query_chooses(workspace: Path) -> None:
    with hf.open(workspace) as tables:
        select = "SELECT record FROM segments WHERE retransmission AND flow_id = 1"
        expected = tables.sql(select)["record"].to_pylist()
    assert hf.segments(workspace, flow=1, where="retransmission")["record"].to_list() == expected
    assert hf.segments(workspace, host="10.78.0.0/24").height == 0
    where = "flow_id IN (SELECT flow_id FROM flows WHERE vantage = 'sender') AND retransmission"
    assert hf.segments(workspace, where=where)["record"].to_list() == expected
    assert hf.segments(CAPTURE, where="record IN (SELECT record FROM events WHERE kind = 'loss')").height > 10


def test_events_are_in_order_of_time(workspace: Path) -> None:
    times = hf.events(workspace)["t_ns"].to_list()
    assert times == sorted(times)
    assert set(hf.events(workspace, where="kind = 'recovery'")["kind"]) == {"recovery"}
    assert hf.events(CAPTURE, where="t_ns IN (SELECT t_ns FROM instruments)").height > 0


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({"host": "10.77.0.1"}, 2),
        ({"host": "10.77.0.0/24"}, 2),
        ({"host": "10.78.0.0/24"}, 0),
        ({"host": "2001:db8::/32"}, 0),
        ({"port": 5001}, 2),
        ({"port": 5002}, 0),
        ({"host": "10.77.0.2", "port": 5001, "flow": 2}, 1),
        ({"where": "vantage = 'sender'"}, 1),
        ({"run": 1}, 0),
    ],
)
def test_ends_choose_connections(workspace: Path, conditions: dict[str, Any], found: int) -> None:
    assert hf.flows(workspace, **conditions).height == found


def test_times_are_seconds_since_the_first_segment_or_utc(workspace: Path) -> None:
    start = int(hf.flows(workspace)["start_ns"].min())  # type: ignore[arg-type]
    chosen = hf.segments(workspace, from_time="10", to_time="20.5")["t_ns"]
    assert start + 10 * 10**9 <= chosen.min() <= chosen.max() <= start + 20_500_000_000  # type: ignore[operator]
    whole = hf.segments(workspace)["t_ns"]
    assert len(chosen) == sum(start + 10 * 10**9 <= t <= start + 20_500_000_000 for t in whole)
    assert hf.segments(workspace, to_time="1999-01-01").height == 0
    # A recovery that begins before the time and ends in it is chosen.
    recovery = hf.events(workspace, where="kind = 'recovery'").row(0, named=True)
    middle = (recovery["t_ns"] + recovery["end_ns"]) / 2 - start
    at = f"{middle / 1e9:.6f}"
    assert recovery["record"] in hf.events(workspace, from_time=at, to_time=at)["record"].to_list()


@pytest.mark.parametrize(
    "where",
    ["no_such_column > 1", "payload_bytes >", "true) OR (true", "SELECT 1", "true; DROP VIEW flows", "sum(flags) > 1",
     "flags = (SELECT count(*) FROM read_csv('/etc/passwd'))", "flags = 'x'"],
)  # fmt: skip
def test_what_is_no_expression_is_one_line(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["segments", str(CAPTURE), "--where", where, "--json"]) == 2
    ended = capsys.readouterr()
    assert ended.out == ""
    assert len(ended.err.splitlines()) <= 2
    with pytest.raises(hf.HindflightError):
        hf.segments(CAPTURE, where=where)


@pytest.mark.parametrize("wrong", [("--flow", "9"), ("--host", "nowhere"), ("--port", "70000"), ("--from", "noon")])
def test_wrong_conditions_are_refused(wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", str(CAPTURE), *wrong]) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 2


@pytest.mark.parametrize("table", TABLES)
def test_tables_fit_80_columns(table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    narrow, wide = (printed(capsys, table, CAPTURE, *option) for option in ((), ("--wide",)))
    assert max(map(len, narrow.splitlines())) <= 80
    assert "--wide adds" in narrow
    assert len(wide.splitlines()[1]) > len(narrow.splitlines()[1])


def test_a_table_for_people_says_how_many_rows_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["segments", str(CAPTURE)]) == 0
    rows = hf.segments(CAPTURE).height
    assert f"of {rows} rows" in capsys.readouterr().err


def test_packet_numbers_and_flags_are_those_of_wireshark_and_tcpdump(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "segments", CAPTURE, "--to", "0.6").splitlines()[3:]
    assert [line.split()[0] for line in lines[:3]] == ["1", "2", "3"]
    assert [line.split()[4] for line in lines[:3]] == ["S", "S.", "."]


def test_info_knows_everything_that_the_tool_reads_or_writes(workspace: Path, tmp_path: Path) -> None:
    trace, scenario = tmp_path / "c.parquet", tmp_path / "s.toml"
    assert main(["scenario", "init", str(CAPTURE), "-o", str(scenario)]) == 0
    assert main(["channel", "extract", str(CAPTURE), "-o", str(trace)]) == 0
    assert main(["channel", "convert", str(trace), str(tmp_path / "c.csv")]) == 0
    (tmp_path / "m.toml").write_text('model = "bernoulli"\nloss = 0.01\n')
    kinds = {
        CAPTURE: "capture",
        workspace: "workspace",
        LOG: "log",
        scenario: "scenario",
        trace: "channel",
        tmp_path / "c.csv": "channel",
        ROOT / "fixtures" / "links" / "S9-bbr.csv.xz": "channel",
    }
    assert {path: hf.info(path)["kind"] for path in kinds} == kinds
    assert hf.info(workspace)["rows"]["flows"] == 2
    assert hf.info(LOG)["rows"] > 1000
    assert hf.info(scenario)["variants"] == ["newreno", "cubic"]
    assert hf.info(trace)["packets"] == hf.info(tmp_path / "c.csv")["packets"] > 1000
    assert hf.info(next(workspace.glob("flows-*.parquet")))["table"] == "flows"


def test_info_knows_what_export_wrote(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with hf.open(workspace) as tables:
        rows = {name: tables.arrow(name).num_rows for name in (*TABLES, "instruments")}
    for form in ("csv", "jsonl"):
        hf.export(workspace, tmp_path / form, format=form)
        for name, count in rows.items():
            document = hf.info(tmp_path / form / f"{name}.{form}")
            assert (document["kind"], document["rows"]) == ("tables", {name: count})
    hf.export(workspace, tmp_path / "db", format="sqlite")
    assert hf.info(tmp_path / "db")["rows"].items() >= rows.items()
    hf.export(workspace, tmp_path / "xpl", format="xpl", flow=1)
    assert {hf.info(path)["kind"] for path in (tmp_path / "xpl").iterdir()} == {"graph"}
    assert "instruments" in printed(capsys, "info", tmp_path / "db")
    (tmp_path / "db").write_bytes((tmp_path / "db").read_bytes()[:5000])
    assert main(["info", str(tmp_path / "db")]) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 2


def test_info_prints_what_python_returns(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (workspace, LOG, CAPTURE):
        assert json.loads(printed(capsys, "info", path, "--json")) == hf.info(path)
        assert printed(capsys, "info", path)


def test_info_refuses_what_is_nothing_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("nothing\n")
    assert main(["info", str(tmp_path / "a.txt")]) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 2
