from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from hindflight.reports.exports import write_charts, write_what_if_csv
from hindflight.toolkit.errors import MachineError, ReportError
from hindflight.toolkit.schema import table_from_rows
from tests.reports.conftest import Tables, run_row


def test_every_chart_is_written_as_png(tables: Tables, tmp_path: Path) -> None:
    paths = write_charts(tables, tmp_path / "charts", "png")
    assert [path.name for path in paths] == sorted(path.name for path in (tmp_path / "charts").iterdir())
    assert len(paths) == 14
    assert paths[2].name == "03-flow-1-time-sequence-graph.png"
    assert all(path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n") for path in paths)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_svg_is_well_formed_and_has_a_title(tables: Tables, tmp_path: Path, mode: str) -> None:
    few = {name: tables[name] for name in ("segments", "flows")}
    paths = write_charts(few, tmp_path, "svg", "dark" if mode == "dark" else "light")
    root = ET.fromstring(paths[0].read_bytes())  # noqa: S314  (our own file)
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert "120 data segments, 4 retransmissions" in str(title.text)
    paper = "#15181c" if mode == "dark" else "#ffffff"
    assert f'fill="{paper}"' in paths[0].read_text()


def test_tables_without_a_chart_raise_report_error(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no data for any chart"):
        write_charts({}, tmp_path / "charts")
    assert not (tmp_path / "charts").exists()


def test_folder_that_is_a_file_raises_machine_error(tables: Tables, tmp_path: Path) -> None:
    (tmp_path / "charts").write_text("")
    with pytest.raises(MachineError, match="cannot create"):
        write_charts(tables, tmp_path / "charts")


def test_what_if_csv_has_one_row_per_run(tables: Tables, tmp_path: Path) -> None:
    path = write_what_if_csv(tables, tmp_path / "what-if.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    assert {row["purpose"] for row in rows} == {"what_if"}
    assert float(rows[0]["goodput_bps"]) == 150e3
    assert rows[0]["proxy_held_max_bytes"] == ""
    assert {"aqm_losses", "ecn_marks", "ecn_reductions", "reset_ns"} <= rows[0].keys()


def test_what_if_csv_quotes_names(tmp_path: Path) -> None:
    odd = 'node "a", b\nc'
    path = write_what_if_csv({"runs": table_from_rows("runs", [run_row(1, "reno", odd)])}, tmp_path / "what-if.csv")
    with path.open(newline="") as file:
        assert [row["proxy"] for row in csv.DictReader(file)] == [odd]


def test_what_if_csv_escapes_formulas(tmp_path: Path) -> None:
    row = run_row(1, "reno", "none", scenario="=HYPERLINK(1)", flow="-1.5", goodput_bps=-1.5)
    path = write_what_if_csv({"runs": table_from_rows("runs", [row])}, tmp_path / "what-if.csv")
    with path.open(newline="") as file:
        (found,) = csv.DictReader(file)
    assert found["scenario"] == "'=HYPERLINK(1)"
    assert found["flow"] == "-1.5"
    assert float(found["goodput_bps"]) == -1.5


def test_what_if_csv_without_runs_raises_report_error(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no what-if runs"):
        write_what_if_csv({}, tmp_path / "what-if.csv")
