"""A replay into a workspace: what it holds while the last runs are made, and when they fail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hindflight.replay.catalogue import engine_variant_names
from hindflight.replay.experiment import findings
from hindflight.replay.experiment.experiment import Execution
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.toolkit.errors import ScenarioError
from hindflight.toolkit.workspace import Workspace
from hindflight.workflow import replay_into

LAST = "The last runs are done."


def scenario() -> Scenario:
    link = {"name": "sky", "rate": "2 Mbit/s", "delay": "20 ms", "queue": "20 pkts"}
    data = {
        "name": "short",
        "duration": "1 s",
        "path": ["sender", "receiver"],
        "links": [link],
        "compare": {"variants": ["newreno", "cubic"], "seeds": 1},
    }
    return parse_scenario(data, "short", engine_variant_names())


def test_tables_come_before_the_findings_of_the_last_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Mapping[str, pa.Table]] = []

    def last_runs(known: list[dict[str, Any]], *_: object) -> list[dict[str, Any]]:
        assert seen
        return [{**known[0], "section": "recommendation", "text": LAST}]

    monkeypatch.setattr(findings, "findings_of_more_runs", last_runs)
    workspace = Workspace.create(tmp_path / "ws")
    result = replay_into(workspace, scenario(), tmp_path, "replay", Execution(1), seen.append)
    for name, table in seen[0].items():
        if name != "findings":
            assert workspace.table(name).num_rows == table.num_rows == result.tables[name].num_rows
    known = seen[0]["findings"].to_pylist()
    assert known
    assert workspace.table("findings").to_pylist()[:-1] == known
    assert workspace.table("findings")["text"].to_pylist()[-1] == LAST
    assert result.tables["findings"].to_pylist() == workspace.table("findings").to_pylist()


def test_last_runs_that_fail_leave_the_earlier_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    replay_into(workspace, scenario(), tmp_path, "replay", Execution(1))
    files, before = sorted(workspace.path.iterdir()), workspace.manifest

    def last_runs(*_: object) -> list[dict[str, Any]]:
        raise ScenarioError("refused")

    monkeypatch.setattr(findings, "findings_of_more_runs", last_runs)
    with pytest.raises(ScenarioError, match="refused"):
        replay_into(workspace, scenario(), tmp_path, "again", Execution(1))
    assert Workspace.open(workspace.path).manifest == before
    assert sorted(workspace.path.iterdir()) == files


@pytest.mark.parametrize(("threads", "watched", "left"), [(3, True, 2), (1, True, 1), (3, False, 3)])
def test_who_gets_the_tables_has_a_thread_during_the_last_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, watched: bool, left: int
) -> None:
    given: list[object] = []

    def last_runs(*arguments: object) -> list[dict[str, Any]]:
        given.append(arguments[-1])
        return []

    monkeypatch.setattr(findings, "findings_of_more_runs", last_runs)
    on_compared = (lambda _: None) if watched else None
    workspace = Workspace.create(tmp_path / "ws")
    replay_into(workspace, scenario(), tmp_path, "replay", Execution(threads), on_compared)
    assert given == [left]
