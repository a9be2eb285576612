"""`python -m validation`: how far the engine agrees with the Linux stack, ns-2 and closed forms."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.errors import run
from hindflight.cli.output import AsJson, print_json, print_table, progress_on_stderr, say
from hindflight.cli.replay import Threads
from validation.captures.command import captures
from validation.parity.command import parity
from validation.relay.command import relay

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from validation.judge import Check
    from validation.linux import RunResult
    from validation.ns2 import Cell
    from validation.open_loop import OpenLoopResult
    from validation.tables import Results
    from validation.tcp_linux import WindowComparison


FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
"""Holds a few recorded runs of the Linux stack and the recording of two flows at one bottleneck."""


def main(arguments: list[str]) -> int:
    """Run the tool with `arguments` (without the program's name) and return the exit code."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.callback(invoke_without_command=True)(validate)
    app.command("captures")(captures)
    app.command("parity")(parity)
    app.command("relay")(relay)
    return run(lambda words: app(words, prog_name="python -m validation", standalone_mode=False), arguments)


def validate(
    context: typer.Context,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder of recorded runs of the Linux stack [default: those in fixtures/kernel]."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Every cell of ns-2 and of the closed forms, which takes minutes; implied by --data."
        ),
    ] = False,
    closed_forms: Annotated[bool, typer.Option(help="Compare with closed forms, too.")] = True,
    ns2: Annotated[bool, typer.Option(help="Compare with ns-2, too, if it is installed.")] = True,
    write: Annotated[Path | None, typer.Option("--write", help="Also write the tables as a Markdown page.")] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Compare the engine with closed forms, ns-2 and recorded Linux runs. A failure is shown; it is not an error."""
    if context.invoked_subcommand is not None:
        return
    from validation.recursions import validate_recursions
    from validation.repeated import validate_repeated
    from validation.tables import Results

    whole = full or data is not None
    linux, open_loop = _compare_with_linux(data or FIXTURES / "kernel", threads)
    repeated = validate_repeated(FIXTURES / "shared_bottleneck.json", threads=threads)
    cells, modules, comparisons = _compare_with_ns2(whole, threads) if ns2 else ([], [], [])
    recursions = validate_recursions() if closed_forms else []
    results = Results(
        linux=linux,
        repeated=repeated,
        open_loop=open_loop,
        ns2=cells,
        ns2_modules=modules,
        tcp_linux=[*comparisons, *recursions],
        closed=_compare_with_closed_forms(whole, threads) if closed_forms else [],
    )
    if write is not None:
        _write_page(write, results)
    if as_json:
        print_json(_document(results))
    else:
        _show(results)
    if not whole:
        say("a quick run; --full compares every cell of ns-2 and of the closed forms, --data DIR more runs of Linux")


def _compare_with_linux(folder: Path, threads: int | None) -> tuple[list[RunResult], list[OpenLoopResult]]:
    from hindflight.toolkit.capture import load_capture
    from validation.linux import validate_runs
    from validation.open_loop import validate_open_loop

    with progress_on_stderr() as report:
        runs = validate_runs(folder, threads=threads, on_done=lambda done, of: report(folder, done / of))
    with progress_on_stderr() as report:
        open_loop = validate_open_loop(
            folder, lambda path: load_capture(path).segments, on_done=lambda done, of: report(folder, done / of)
        )
    return runs, open_loop


def _compare_with_closed_forms(whole: bool, threads: int | None) -> list[Check]:
    from validation.closed_forms import QUICK, Grid, validate_closed_forms

    return validate_closed_forms(Grid() if whole else QUICK, threads=threads)


def _compare_with_ns2(whole: bool, threads: int | None) -> tuple[list[Cell], list[Cell], list[WindowComparison]]:
    from validation.ns2 import QUICK, TCP_LINUX, TCP_LINUX_QUICK, Grid, compare_with_ns2
    from validation.simulator import simulator
    from validation.tcp_linux import compare_with_tcp_linux

    ns = simulator()
    if ns is None:
        say("ns-2 is not installed, so nothing is compared with it; on Debian: apt-get install ns2")
        return [], [], []
    path = Path(ns)
    found = []
    for grid in (Grid(), TCP_LINUX) if whole else (QUICK, TCP_LINUX_QUICK):
        with progress_on_stderr() as report:
            cells = compare_with_ns2(ns, grid, threads=threads, on_done=lambda done, of: report(path, done / of))
        found.append(cells)
    return found[0], found[1], compare_with_tcp_linux(ns, threads=threads)


def _write_page(page: Path, results: Results) -> None:
    """Write the page and, in the folder `images` next to it, a plot per congestion control."""
    from hindflight.reports.exports import write_chart
    from hindflight.toolkit.files import plain_os_errors, write_whole
    from validation.charts import validation_windows
    from validation.page import render_page

    pictures = {}
    variants = {flow.variant for run in results.linux for flow in run.flows if flow.measured is not None}
    with plain_os_errors(f"writing {page}"):
        for variant in sorted(variants, key=lambda variant: (variant != "reno", variant)):
            frame = _windows(results.linux, variant)
            if frame.is_empty():
                continue
            images = page.parent / "images"
            images.mkdir(parents=True, exist_ok=True)
            title = f"{variant}: congestion window at equal data packet, Linux and the engine"
            write_chart(validation_windows(frame, title), images / f"validation-{variant}.svg")
            pictures[title] = f"images/validation-{variant}.svg"
        _draw_comparisons(page.parent / "images" / "variants", results.tcp_linux)
        write_whole(page, render_page(results, pictures))


def _draw_comparisons(folder: Path, comparisons: Sequence[WindowComparison]) -> None:
    """Write a picture per variant, for its page in docs/variants."""
    import polars as pl

    from hindflight.reports.exports import write_chart
    from validation.charts import ENGINE, validation_windows

    by_picture: dict[tuple[str, str], list[WindowComparison]] = {}
    for comparison in comparisons:
        by_picture.setdefault((comparison.case.variant, comparison.case.reference), []).append(comparison)
    folder.mkdir(parents=True, exist_ok=True)
    first: dict[str, tuple[str, str]] = {}
    for key in by_picture:
        first.setdefault(key[0], key)
    for (variant, reference), found in by_picture.items():
        parts = [
            pl.DataFrame({"run": one.case.path.name, "side": side, "packet": one.packet, "cwnd_pkts": windows})
            for one in found
            for side, windows in ((reference, one.reference_pkts), (ENGINE, one.engine_pkts))
        ]
        title = f"{variant}: cwnd at equal data packet"
        more = "-closed-form" if (variant, reference) != first[variant] else ""
        write_chart(validation_windows(pl.concat(parts), title, reference), folder / f"{variant}{more}.svg")


def _windows(results: Sequence[RunResult], variant: str) -> pl.DataFrame:
    """Return the windows of both sides of every flow of `variant` that has them."""
    import polars as pl

    from validation.charts import ENGINE, KERNEL

    parts = [
        pl.DataFrame(
            {"run": flow.subject, "side": side, "packet": range(len(windows)), "cwnd_pkts": windows},
            nan_to_null=True,
        )
        for run in results
        for flow in run.flows
        if flow.variant == variant and flow.measured is not None and flow.measured[0].cwnd_pkts is not None
        for side, windows in zip((KERNEL, ENGINE), (one.cwnd_pkts for one in flow.measured), strict=True)
        if windows is not None
    ]
    return pl.concat(parts) if parts else pl.DataFrame()


def _document(results: Results) -> dict[str, Any]:
    from dataclasses import asdict

    from validation.judge import finding

    checks = [check for run in results.linux for check in run.checks] + results.others
    return {
        "findings": [finding(check) for check in checks],
        "repeated": None if results.repeated is None else asdict(results.repeated),
        "divergences": [
            {"subject": flow.subject, **asdict(divergence)}
            for run in results.linux
            for flow in run.flows
            for divergence in flow.divergences
        ],
        "open_loop_divergences": [
            {"subject": flow.subject, **asdict(flow.divergence)}
            for flow in results.open_loop
            if flow.divergence is not None
        ],
    }


def _show(results: Results) -> None:
    from validation.tables import failure_lines, summary

    for table in results.tables:
        print_table(list(table.rows[0]), table.rows, table.title)
        if table.bounds:
            print(f"{table.bounds}\n")
    for line in failure_lines(results):
        print(f"fail: {line}")
    for line in summary(results):
        print(line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
