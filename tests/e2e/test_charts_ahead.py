"""Charts of a what-if report that are drawn before its last findings are known."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from hindflight.charts_ahead import Charts
from hindflight.reports.document import ReportMeta, sections_of
from hindflight.reports.frames import Tables
from hindflight.reports.sections import Figure, figures_of
from hindflight.toolkit.schema import TABLES, table_from_rows
from hindflight.toolkit.workspace import Workspace
from tests.reports.conftest import finding, whole_tables


def parts() -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """Return what was captured, and what a replay adds but for the findings of its last runs."""
    captured, replayed = {}, {}
    for name, table in whole_tables().items():
        of_replay = pa.array([name in {"runs", "findings"}] * table.num_rows, pa.bool_())
        if "run_id" in table.column_names:
            of_replay = pc.greater(table["run_id"], 0)
        captured[name], replayed[name] = table.filter(pc.invert(of_replay)), table.filter(of_replay)
    return captured, {name: table for name, table in replayed.items() if table.num_rows}


def with_all_findings(replayed: dict[str, pa.Table]) -> dict[str, pa.Table]:
    more = [
        finding("sensitivity", "cubic", "by_time", value=2e5, unit="bit/s"),
        finding("sensitivity", "capture", text="Each choice was replayed in four ways."),
        finding("recommendation", "cubic", text="Use cubic."),
    ]
    return {**replayed, "findings": table_from_rows("findings", [*replayed["findings"].to_pylist(), *more])}


def of_report(workspace: Workspace, drawn: dict[str, Figure] | None = None) -> dict[str, Figure]:
    tables: Tables = {name: workspace.scan(name) for name in TABLES}
    return figures_of(sections_of(tables, ReportMeta("", workspace=str(workspace.path)), drawn))


def captured_workspace(path: Path, captured: dict[str, pa.Table]) -> Workspace:
    workspace = Workspace.create(path)
    with workspace.transaction("ingest") as transaction:
        transaction.write_all(captured)
    return workspace


def test_they_are_those_of_the_report(tmp_path: Path) -> None:
    captured, replayed = parts()
    workspace = captured_workspace(tmp_path / "ws", captured)
    with workspace.transaction("earlier", replay=True) as transaction:
        transaction.write("runs", replayed["runs"])
    with Charts(workspace) as charts:
        charts.draw(replayed)
        drawn = dict(charts.drawn())
    with workspace.transaction("replay", replay=True) as transaction:
        transaction.write_all(with_all_findings(replayed))
    figures = of_report(workspace)
    assert {"self_check_cwnd", "what_if_goodput", "flow-1-rtt"} <= set(figures)
    assert set(drawn) == set(figures)
    for key, figure in figures.items():
        mine = drawn[key]
        assert mine.spec == figure.spec
        assert (mine.group, mine.caption, mine.commands) == (figure.group, figure.caption, figure.commands)
    again = of_report(workspace, drawn)
    assert all(again[key] is drawn[key] for key in figures), "none is drawn again"


def test_no_chart_is_drawn_any_more_once_the_study_has_ended(tmp_path: Path) -> None:
    captured, replayed = parts()
    with Charts(captured_workspace(tmp_path / "ws", captured)) as charts:
        pass
    charts.draw(replayed)
    assert not charts.drawn()


def test_the_report_draws_what_could_not_be_drawn_ahead(tmp_path: Path) -> None:
    captured, replayed = parts()
    workspace = captured_workspace(tmp_path / "ws", captured)
    with Charts(workspace) as charts:
        charts.draw({**replayed, "runs": replayed["runs"].drop_columns("proxy")})
        assert not charts.drawn()
    assert "flow-1-rtt" in of_report(workspace, dict(charts.drawn()))
