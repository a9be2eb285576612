"""The temporary tables of a capture live as long as anything that reads them; and what `Tables` says of itself."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import hindflight as hf
from hindflight.channels.trace import Trace
from hindflight.toolkit.source import Tables

CAPTURE = Path(__file__).resolve().parents[2] / "fixtures" / "kernel" / "S2-reno" / "snd.pcap.xz"


def test_a_table_of_a_result_without_a_name_can_be_read(scratch: Path) -> None:
    assert hf.open(CAPTURE).flows.collect().height == 1
    derived = hf.open(CAPTURE).segments.filter(pl.col("payload_bytes") > 0).select("seq", "t_ns")
    relation = hf.open(CAPTURE).duckdb("segments").filter("payload_bytes > 0")
    gc.collect()
    assert derived.collect().height == len(relation.fetchall()) > 1000
    assert derived.collect(engine="streaming").width == 2
    del derived, relation
    gc.collect()
    assert not list(scratch.iterdir())


def test_closed_tables_say_so(scratch: Path) -> None:
    with hf.open(CAPTURE) as tables:
        frame = tables.flows
    assert not list(scratch.iterdir())
    with pytest.raises(Exception, match="closed"):
        frame.collect()


def test_an_unknown_table_is_an_error_of_ours_that_suggests_a_name() -> None:
    with hf.open(CAPTURE) as tables:
        for ask in (lambda: tables["segment"], lambda: tables.segment, lambda: tables.arrow("segment")):
            with pytest.raises(hf.HindflightError, match="did you mean 'segments'") as caught:
                ask()
            assert "\n" not in str(caught.value)
        assert "segment" not in tables
        assert tables.get("segment") is None
        assert not hasattr(tables, "segment")


def test_the_representation_says_what_it_holds() -> None:
    with hf.open(CAPTURE) as tables:
        text = repr(tables)
        assert "snd.pcap.xz" in text
        assert "flows 1" in text
        assert f"segments {tables.arrow('segments').num_rows:,}" in text
        assert "channel" not in text


def test_the_public_names_are_all_listed_and_nothing_heavy_is_imported() -> None:
    assert set(hf.__all__) <= set(dir(hf))
    assert all(getattr(hf, name) is not None for name in hf.__all__)
    code = (
        "import sys, hindflight; dir(hindflight); print({'polars', 'pyarrow', 'altair', 'duckdb'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


def test_what_if_from_python() -> None:
    runs = hf.whatif(CAPTURE, variants=["cubic"], proxies=["none"], seeds=1).runs.collect()
    assert {"self_check", "what_if"} == set(runs["purpose"].cast(str))
    with pytest.raises(hf.HindflightError, match="did you mean 'cubic'"):
        hf.whatif(CAPTURE, variants=["cubik"])


def test_one_run_has_one_goodput() -> None:
    tables = hf.whatif(CAPTURE, variants=["cubic"], proxies=["none"], seeds=1)
    found = tables.findings.filter(pl.col("metric").is_in(["goodput", "goodput_as_captured"])).collect()
    check = {r["subject"]: r["value"] for r in found.to_dicts() if r["section"] == "self_check"}
    replayed = {r["subject"]: r["value"] for r in found.to_dicts() if r["metric"] == "goodput_as_captured"}
    both = check.keys() & replayed.keys()
    assert both == {"linux-reno"}
    assert {name: check[name] for name in both} == pytest.approx({name: replayed[name] for name in both}, rel=1e-12)


def test_channel_and_scenario_from_python(tmp_path: Path) -> None:
    trace = hf.extract_channel(CAPTURE)
    assert isinstance(trace, Trace)
    rate = trace.estimate("rate_bps")
    assert rate is not None
    assert rate.unit == "bit/s"
    written = hf.draft_scenario(CAPTURE, tmp_path / "s.toml", variants=["cubic"], seeds=0)
    assert written.is_file()
    tables = hf.replay(tmp_path / "s.toml", CAPTURE)
    assert isinstance(tables, Tables)
