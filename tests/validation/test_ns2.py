"""The ns2 profile compared with ns-2: the script for ns-2, and, where ns-2 is installed, a few sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hindflight.toolkit.errors import MachineError
from validation.ns2 import TCP_LINUX_QUICK, Cell, Grid, compare_with_ns2, pooled
from validation.simulator import Chain, script, simulate, simulator
from validation.tables import Results, ns2_modules_table

NS = simulator()

needs_ns2 = pytest.mark.skipif(NS is None, reason="ns-2 is not installed (Debian: apt-get install ns2)")


def _chain(**changes: object) -> Chain:
    values = {"variant": "newreno", "delays_s": (0.125, 0.125), "rate_bps": 1e6, "ber": 0.0, "queue_pkts": 42}
    return Chain(**{**values, "duration_s": 31.0, **changes})  # type: ignore[arg-type]


def test_the_script_says_what_the_chain_says() -> None:
    text = script(_chain(variant="sack", ber=1e-7), 3, 90)
    for line in (
        "for {set n 0} {$n < 90} {incr n} { new RNG }",
        "$model unit byte",
        "$model set rate_ [expr 1 - pow(1 - 1e-07, 8)]",
        "foreach delay_s {0.125 0.125} {",
        "$ns queue-limit $from $to 43",
        "set tcp [new Agent/TCP/Sack1]",
        "set sink [new Agent/TCPSink/Sack1]",
        "for {set n 0} {$n < 3} {incr n} {",
        "$ns at 31.0 finish",
    ):
        assert line in text


def test_a_module_runs_under_tcp_linux_with_its_settings() -> None:
    text = script(_chain(variant="westwood-plus", ssthresh_pkts=42), 2)
    for line in (
        "Agent/TCP set timestamps_ true",
        "set tcp [new Agent/TCP/Linux]",
        "set sink [new Agent/TCPSink/Sack1]",
        '$ns at 0 "$tcp set ssthresh_ 42; $tcp select_ca westwood"',
    ):
        assert line in text
    assert "select_ca" not in script(_chain(), 2)


def test_a_cell_is_not_judged_where_ns2_itself_is_not_steady() -> None:
    cells = [
        Cell("GEO", _chain(), engine_bps=2e5, ns2_bps=1e5, joint_bps=1e3, spread=spread, max_spread=0.5)
        for spread in (0.49, 0.51)
    ]
    assert [cell.judged for cell in cells] == [True, False]
    assert [row["verdict"] for row in ns2_modules_table(cells).rows] == ["fail", "not judged"]
    assert [check.verdict for check in Results(linux=[], ns2_modules=cells).others] == ["fail"]


def test_the_wider_of_share_and_interval_is_allowed() -> None:
    narrow = Cell("GEO", _chain(), engine_bps=1.06e5, ns2_bps=1e5, joint_bps=4e3)
    wide = Cell("GEO", _chain(), engine_bps=1.06e5, ns2_bps=1e5, joint_bps=7e3)
    low = Cell("GEO", _chain(), engine_bps=0.94e5, ns2_bps=1e5, joint_bps=4e3)
    assert [cell.check.verdict for cell in (narrow, wide, low)] == ["fail", "pass", "fail"]


def test_all_cells_together_show_a_bias_that_no_cell_does() -> None:
    cells = [Cell("GEO", _chain(), engine_bps=ours, ns2_bps=1e5, joint_bps=8e3) for ours in (0.93e5, 0.95e5) * 8]
    assert all(cell.check.verdict == "pass" for cell in cells)
    mean, width = pooled(cells)
    assert mean == pytest.approx(-0.06)
    assert width == pytest.approx(0.02)


def test_a_simulation_that_fails_says_so() -> None:
    with pytest.raises(MachineError, match="the simulation failed"):
        simulate("false", [(_chain(), 0)], 2, 1)


@pytest.mark.peer
@needs_ns2
@pytest.mark.parametrize("variant", ["reno", "newreno", "sack"])
def test_without_errors_both_deliver_the_same_packets(variant: str) -> None:
    # One session: slow start to an overfull queue, recovery from it, congestion avoidance.
    assert NS is not None
    grid = Grid(paths=("GEO",), rates_bps=(1e6,), bers=(0.0,), variants=(variant,), repetitions=2)
    (cell,) = compare_with_ns2(NS, grid)
    assert cell.engine_bps == pytest.approx(cell.ns2_bps, rel=0.02)


@pytest.mark.peer
@needs_ns2
def test_with_errors_both_deliver_as_much() -> None:
    assert NS is not None
    grid = Grid(paths=("GEO",), rates_bps=(1e6,), bers=(1e-7,), repetitions=30)
    for cell in compare_with_ns2(NS, grid):
        assert cell.check.verdict == "pass", cell
        assert cell.joint_bps > 0


@pytest.mark.peer
@needs_ns2
def test_modules_of_linux_deliver_as_much_under_the_same_recovery() -> None:
    assert NS is not None
    cells = compare_with_ns2(NS, replace(TCP_LINUX_QUICK, repetitions=40))
    assert {cell.chain.variant for cell in cells} == {"linux-reno", "cubic", "hybla", "westwood-plus"}
    for cell in cells:
        # Half as wide again: one cell in twenty would miss the interval itself by chance.
        assert abs(cell.engine_bps - cell.ns2_bps) <= max(0.05 * cell.ns2_bps, 1.5 * cell.joint_bps), cell


@pytest.mark.peer
@needs_ns2
@pytest.mark.parametrize("variant", ["linux-reno", "westwood-plus", "cubic", "hybla"])
def test_without_errors_a_module_and_its_variant_deliver_the_same_packets(variant: str) -> None:
    # Two sessions: slow start to ssthresh, an overfull queue, recovery from it, congestion avoidance.
    assert NS is not None
    grid = replace(TCP_LINUX_QUICK, bers=(0.0,), variants=(variant,), repetitions=2)
    (cell,) = compare_with_ns2(NS, grid)
    assert cell.engine_bps == pytest.approx(cell.ns2_bps, rel=0.02)
