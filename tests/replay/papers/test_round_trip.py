"""A run of each paper, exported as packets and as a snaplog and read again, gives the same sequence chart."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import hindflight as hf
from hindflight.replay.papers.catalogue import PAPERS, paper_of
from hindflight.replay.papers.lab import scenario_text
from hindflight.reports.charts import View
from tests.toolkit.logs import read_log

SHORTER = (("duration", '"6 s"'), ("stop", '"4 s"'), ("seeds", "1"))
"""What a run of a few seconds needs."""
INFERRED = re.compile(r"t|t,seq,seq_end,record,cause")
"""Headers of the marks of timeouts and losses: a capture shows when they were, not what the engine knows of them."""


@pytest.fixture(params=PAPERS)
def replayed(request: pytest.FixtureRequest, tmp_path: Path) -> hf.Tables:
    """The tables of a short replay of the first scenario of a paper."""
    text = scenario_text(paper_of(request.param).scenarios[0])
    for key, value in SHORTER:
        text = re.sub(rf"(?m)^{key} = \S+( \w+\")?", f"{key} = {value}", text)
    path = tmp_path / "short.toml"
    path.write_text(text)
    return hf.replay(path)


def layers(tables: hf.Tables, view: View) -> Counter[str]:
    """The data behind the time-sequence graph, as CSV, without the marks that are inferred from a capture."""
    datasets = hf.charts.time_sequence(tables, view).to_dict()["datasets"].values()
    return Counter(data for data in datasets if not INFERRED.fullmatch(data.partition("\n")[0]))


def test_a_sequence_chart_survives_export_and_ingest(replayed: hf.Tables, tmp_path: Path) -> None:
    workspace = replayed.workspace.path
    hf.export(workspace, tmp_path / "run.pcapng", format="pcapng", run=1)
    before = layers(replayed, View(run_id=1, flow_id=1))
    assert before == layers(hf.open(tmp_path / "run.pcapng"), View(flow_id=1))
    assert sum(len(data.splitlines()) for data in before) > 100

    hf.export(workspace, tmp_path / "run.log", format="web100", run=1, flow=1)
    (log,) = list(read_log(tmp_path / "run.log"))
    assert curve(pl.from_arrow(log.instruments(1))) == curve(states_of(replayed))


def states_of(tables: hf.Tables) -> pl.DataFrame:
    """The states of the flow under test in run 1 as the engine knew them."""
    chosen = (pl.col("run_id") == 1) & (pl.col("flow_id") == 1) & (pl.col("source") == "replay") & (pl.col("leg") == 0)
    return tables.instruments.filter(chosen).collect()


def curve(states: object) -> list[tuple[int, int, int]]:
    """Time in us since the first state, acknowledged and sent octets: the curves of a sequence chart."""
    assert isinstance(states, pl.DataFrame)
    time_us = pl.col("t_ns") // 1000
    rows = states.select(time_us - time_us.first(), "snd_una", "snd_nxt").rows()
    assert len(rows) > 20
    return rows
