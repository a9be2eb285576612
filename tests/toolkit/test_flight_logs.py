"""Flight logs of every kind give the same flight, on the time axis of the captures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.make_flight_logs import LON, ROWS, START_S, alt_m, flight_seeds, lat, relative_csv, rssi, tlog
from hindflight.toolkit.errors import LogError
from hindflight.toolkit.flight import FLIGHT_KINDS, FlightReading, Samples, flight_kind
from hindflight.toolkit.flight.gps_time import utc_ns
from hindflight.toolkit.flight.model import unit_of
from hindflight.toolkit.flight.overview import overview
from hindflight.toolkit.flight.table_csv import column_name, recognises
from hindflight.toolkit.ingest import Ingest
from hindflight.toolkit.workspace import Workspace

IN_UTC = ("flight csv", "gpx", "nmea", "tlog", "dataflash", "ulog")


def ingested(tmp_path: Path, content: bytes, clock_offset_ns: int | None = None) -> tuple[Workspace, str]:
    file = tmp_path / "some.name"
    file.write_bytes(content)
    workspace = Workspace.create(tmp_path / "ws")
    (done,) = Ingest(workspace, "test", clock_offset_ns=clock_offset_ns)([file])
    return workspace, done.note


def values(workspace: Workspace, name: str) -> dict[int, Any]:
    rows = workspace.table("telemetry").to_pylist()
    return {row["t_ns"]: row["text"] if row["value"] is None else row["value"] for row in rows if row["name"] == name}


@pytest.mark.parametrize("name", IN_UTC)
def test_every_kind_gives_the_flight(tmp_path: Path, name: str) -> None:
    workspace, note = ingested(tmp_path, flight_seeds()[name][1])
    times = [(START_S + row) * 10**9 for row in range(ROWS)]
    checks = (("lat_deg", lat, 2e-7), ("lon_deg", lambda _: LON, 2e-7), ("alt_m", alt_m, 0.01))
    for column, expected, tolerance in checks:
        found = values(workspace, column)
        assert list(found) == times, column
        assert list(found.values()) == pytest.approx([expected(row) for row in range(ROWS)], abs=tolerance)
    assert ("estimated from" in note) == (name in ("dataflash", "ulog"))
    units = {row["name"]: row["unit"] for row in workspace.table("telemetry").to_pylist()}
    assert (units["lat_deg"], units["alt_m"]) == ("deg", "m")
    assert {row["source"] for row in workspace.table("telemetry").to_pylist()} == {flight_seeds()[name][0]}


@pytest.mark.parametrize("name", ["tlog", "dataflash", "ulog"])
def test_autopilots_log_attitude_and_radio(tmp_path: Path, name: str) -> None:
    workspace, _ = ingested(tmp_path, flight_seeds()[name][1])
    assert list(values(workspace, "roll_deg").values()) == pytest.approx(list(range(ROWS)), abs=1e-4)
    assert list(values(workspace, "radio_rssi").values()) == [rssi(row) for row in range(ROWS)]
    assert list(values(workspace, "radio_remote_rssi").values()) == [rssi(row) - 10 for row in range(ROWS)]


def test_csv_keeps_every_column_numbers_and_texts(tmp_path: Path) -> None:
    workspace, note = ingested(tmp_path, flight_seeds()["flight csv"][1])
    assert list(values(workspace, "snr_db").values()) == pytest.approx([12 - row / 10 for row in range(ROWS)])
    assert list(values(workspace, "rssi_dbm").values()) == [-60 - row for row in range(ROWS)]
    assert list(values(workspace, "modcod").values()) == ["QPSK 3/4"] * 10 + ["8PSK 2/3"] * 10
    assert "times are UTC as logged" in note


def test_times_from_a_start_need_the_offset_of_the_clock(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(LogError, match="count from") as caught:
        ingested(tmp_path / "a", relative_csv())
    assert "--clock-offset" in (caught.value.hint or "")
    (tmp_path / "b").mkdir()
    workspace, note = ingested(tmp_path / "b", relative_csv(), START_S * 10**9)
    assert list(values(workspace, "lat_deg"))[:2] == [START_S * 10**9 + 250_000_000, START_S * 10**9 + 1_250_000_000]
    assert "as given" in note


def test_a_given_offset_is_added_to_a_log_in_utc(tmp_path: Path) -> None:
    workspace, _ = ingested(tmp_path, tlog(), -(10**9))
    assert next(iter(values(workspace, "lat_deg"))) == (START_S - 1) * 10**9


@pytest.mark.parametrize(
    ("title", "name", "unit"),
    [
        ("SNR [dB]", "snr_db", "dB"),
        ("RSSI (dBm)", "rssi_dbm", "dBm"),
        ("Latitude", "lat_deg", "deg"),
        ("lng", "lon_deg", "deg"),
        ("Alt [m]", "alt_m", "m"),
        ("alt_ft", "alt_ft", "ft"),
        ("Ground Speed [m/s]", "ground_speed_m_s", "m/s"),
        ("heading", "heading_deg", "deg"),
        ("elevation", "elevation_deg", "deg"),
        ("Elevation [m]", "elevation_m", "m"),
        ("MODCOD", "modcod", ""),
        ("rate_mbps", "rate_mbps", "Mbit/s"),
    ],
)
def test_names_and_units_of_columns(title: str, name: str, unit: str) -> None:
    assert column_name(title) == name
    assert unit_of(name) == unit


@pytest.mark.parametrize("title", ["time_utc_s", "t_utc_s", "timestamp_utc_s", "unix_s", "time_utc", "t_s"])
def test_a_column_of_time_may_say_that_it_is_utc(title: str) -> None:
    assert recognises(f"{title},lat_deg\n".encode())


def test_rows_that_are_not_whole_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"time_s,lat,snr_db\n1700000000,47,1\n1700000001,47\nlater,47,2\n1700000002.5,,nan\n1700000003,4")
    reading = FlightReading(file, "flight_csv")
    (part,) = reading.parts()
    assert part.t_ns.tolist() == [1700000000_000000000, 1700000002_500000000]
    assert [(issue.record, issue.kind) for issue in reading.issues()] == [(line, "log_damaged") for line in (3, 4, 6)]
    assert part.telemetry(1, "flight_csv", 0).num_rows == 2


def test_gps_time_is_ahead_of_utc_by_the_leap_seconds() -> None:
    assert utc_ns(2288, 252_818_000) == START_S * 10**9
    assert utc_ns(1886, 0) == (315964800 + 1886 * 604800 - 16) * 10**9 - 10**9, "17 s from July 2015 on"
    assert utc_ns(0, 0) == 0


def test_the_clock_is_the_median_of_what_the_log_knows() -> None:
    t_ns = np.arange(5, dtype=np.int64) * 10**9
    utc = t_ns + 1_700_000_000 * 10**9 + np.array([0, 1, 2, 3, 10**10], np.int64)
    part = Samples(t_ns, {"x": np.ones(5)}, {}, "the start", utc, "GPS times")
    clock = overview([part]).clock_estimate()
    assert clock is not None
    assert (clock.offset_ns, clock.samples) == (1_700_000_000 * 10**9 + 2, 5)


@pytest.mark.parametrize("name", ["gpx", "nmea", "tlog", "dataflash", "ulog"])
def test_a_missing_library_is_one_clear_line(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, content = flight_seeds()[name]
    file = tmp_path / "x"
    file.write_bytes(content)
    for module in [m for m in sys.modules if m.partition(".")[0] in ("pymavlink", "pyulog", "gpxpy", "pynmea2")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [_Refusing(), *sys.meta_path])
    with pytest.raises(LogError, match="is not installed") as caught:
        list(FlightReading(file, kind).parts())
    assert caught.value.hint == "install it: pip install 'hindflight[flight]'"


class _Refusing:
    """Finds the libraries of flight logs nowhere."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] in ("pymavlink", "pyulog", "gpxpy", "pynmea2"):
            raise ImportError(name)


def test_a_damaged_point_of_a_track_loses_no_other(tmp_path: Path) -> None:
    content = flight_seeds()["gpx"][1].replace(b'lat="47.0003000"', b'lat="north"').replace(b"22:13:25Z", b"25 o'clock")
    file = tmp_path / "x"
    file.write_bytes(content[:-10])
    reading = FlightReading(file, "gpx")
    assert sum(len(part.t_ns) for part in reading.parts()) == ROWS - 2
    assert [issue.record for issue in reading.issues() if issue.kind == "log_damaged"] == [4, 6]
    assert [issue.kind for issue in reading.issues() if issue.kind != "log_damaged"] == ["log_truncated"]


def test_a_flight_of_another_time_than_the_captures_is_noted(tmp_path: Path) -> None:
    capture = Path(__file__).resolve().parents[2] / "fixtures" / "logs" / "transfer.pcap.xz"
    file = tmp_path / "x"
    file.write_bytes(tlog())
    workspace = Workspace.create(tmp_path / "ws")
    Ingest(workspace, "test")([capture, file])
    kinds = {row["kind"] for row in workspace.table("issues").to_pylist()}
    assert kinds == {"log_apart", "checksum_offload"}


def test_kinds_have_labels_and_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for kind, content in flight_seeds().values():
        file.write_bytes(content)
        assert flight_kind(file) == kind
    assert len({kind.label for kind in FLIGHT_KINDS.values()}) == len(FLIGHT_KINDS)
