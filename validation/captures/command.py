"""`python -m validation captures DIR`: judge the analysis by recorded runs, and show the lines and the worst runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.output import AsJson, echo, print_json, print_table, progress_on_stderr

if TYPE_CHECKING:
    from validation.captures.lines import Line
    from validation.captures.report import FlowScore, Judged
    from validation.captures.spread import Spread
    from validation.captures.true_link import Flights
    from validation.captures.whatif import Asked, Pair
    from validation.linux import RunResult

ENGINE_METRICS = ("goodput", "cwnd_p25", "cwnd_p50", "cwnd_p75")


def captures(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders of recorded runs of the Linux stack.")
    ],
    what_if: Annotated[
        bool,
        typer.Option(
            "--what-if",
            help="Also ask whatif about every capture, and replay the true links with other losses. Takes minutes.",
        ),
    ] = False,
    links: Annotated[
        int | None, typer.Option("--links", min=1, help="With --what-if: only the first links of each folder.")
    ] = None,
    repeats: Annotated[
        Path | None, typer.Option("--repeats", help="Folder of repeated recordings: Linux's own spread of goodput.")
    ] = None,
    write: Annotated[Path | None, typer.Option("--write", help="Also write the lines as a Markdown page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge the analysis of captures by the fate of every packet. A failure is shown; it is not an error."""
    from validation.captures.lines import (
        cause_lines,
        engine_lines,
        link_lines,
        loss_lines,
        receiver_lines,
        true_link_lines,
        whatif_lines,
        window_lines,
    )
    from validation.captures.report import Judged, judge_captures
    from validation.captures.spread import spreads_of
    from validation.captures.whatif import RECEIVER, SENDER
    from validation.linux import validate_runs
    from validation.rebuild import REPLAYS

    judged = Judged()
    runs: list[RunResult] = []
    for folder in folders:
        with progress_on_stderr() as report:
            found = judge_captures(folder, partial(_report, report, folder))
            judged.flows.extend(found.flows)
            judged.left_out.extend(found.left_out)
            on_done = partial(_report, report, Path(f"engine, {folder.name}"))
            runs += validate_runs(folder, replays=REPLAYS, on_done=on_done)
    flows = judged.flows
    lines = [*loss_lines(flows), *cause_lines(flows), *window_lines(flows), *link_lines(flows)]
    left_out = {run for run, _ in judged.left_out}
    spreads = spreads_of(repeats) if repeats is not None else {}
    lines += engine_lines([run for run in runs if run.name not in left_out], spreads)
    asked: list[Asked] = []
    pairs: list[Pair] = []
    flights: list[Flights] = []
    if what_if:
        asked, pairs = _ask(folders, links, SENDER)
        flights = _fly(folders, links)
        lines += [*whatif_lines(asked, pairs), *true_link_lines(flights)]
        lines += receiver_lines(*_ask(folders, links, RECEIVER))
    if write is not None:
        _write_page(write, lines, judged, _what(judged, folders, links if what_if else None, spreads))
    if as_json:
        print_json(_document(judged, lines, asked, pairs, flights))
    else:
        _show(judged, lines, asked, pairs)
        _show_worst_runs(runs)


def _ask(folders: Sequence[Path], links: int | None, capture: str) -> tuple[list[Asked], list[Pair]]:
    """Ask whatif about each `capture` in the folders."""
    from validation.captures.whatif import ask_all

    asked: list[Asked] = []
    pairs: list[Pair] = []
    for folder in folders:
        with progress_on_stderr() as report:
            on_done = partial(_report, report, Path(f"whatif, {folder.name}, {capture}"))
            answers, predictions = ask_all(folder, on_done, links, capture)
        asked += answers
        pairs += predictions
    return asked, pairs


def _fly(folders: Sequence[Path], links: int | None) -> list[Flights]:
    """Let flows like the recorded ones fly over the true links in the folders."""
    from validation.captures.true_link import fly_all

    flights: list[Flights] = []
    for folder in folders:
        with progress_on_stderr() as report:
            flights += fly_all(folder, partial(_report, report, Path(f"flights, {folder.name}")), links)
    return flights


def _what(judged: Judged, folders: Sequence[Path], links: int | None, spreads: Mapping[tuple[str, int], Spread]) -> str:
    """Say which recordings were judged, and how many runs have repeated ones."""
    runs = len({flow.run for flow in judged.flows})
    what = f"Judged: {runs} runs in {', '.join(folder.name for folder in folders)}."
    if links is not None:
        what += f" Predictions: the first {links} links of each set in the order of their names (`--links {links}`)."
    if spreads:
        what += f" Recorded again, for Linux's own spread: {len({run for run, _ in spreads})} runs."
    return what


def _write_page(page: Path, lines: Sequence[Line], judged: Judged, what: str) -> None:
    from hindflight.toolkit.files import plain_os_errors, write_whole
    from validation.captures.page import render

    with plain_os_errors(f"writing {page}"):
        write_whole(page, render(lines, what, judged.left_out))


def _report(report: Callable[[Path, float], None], what: Path, done: int, of: int) -> None:
    report(what, done / of)


def _document(
    judged: Judged,
    lines: Sequence[Line],
    asked: Sequence[Asked],
    pairs: Sequence[Pair],
    flights: Sequence[Flights],
) -> dict[str, Any]:
    from validation.captures.reliability import reliability

    return {
        "lines": [{**asdict(line), "verdict": line.verdict} for line in lines],
        "verdicts": reliability(judged.flows),
        "flows": [asdict(flow) for flow in judged.flows],
        "left_out": [{"run": run, "reason": reason} for run, reason in judged.left_out],
        "what_if": [asdict(one) for one in asked],
        "predictions": [asdict(pair) for pair in pairs],
        "flights": [asdict(run) for run in flights],
    }


def _show(judged: Judged, lines: Sequence[Line], asked: Sequence[Asked], pairs: Sequence[Pair]) -> None:
    rows = [
        {
            "of": line.subject,
            "quantity": line.metric,
            "value": _number(line.value),
            "bound": f"{'>=' if line.at_least else '<='} {_number(line.bound)}" if line.bound is not None else "",
            "cases": line.of,
            "verdict": line.verdict,
        }
        for line in lines
    ]
    print_table(list(rows[0]), rows, f"{len(judged.flows)} flows in captures, {len(judged.left_out)} runs left out")
    for run, reason in judged.left_out:
        echo(f"left out: {run}: {reason}")
    _show_worst(judged.flows)
    for one in asked:
        if one.error is not None:
            echo(f"no answer: {one.link}-{one.congestion_control}: {one.error}")
    for pair in sorted((pair for pair in pairs if not pair.holds), key=lambda pair: -pair.score)[:10]:
        echo(
            f"outside: {pair.link} from {pair.captured} to {pair.predicted}: predicted {_mbps(pair.mean)} "
            f"[{_mbps(pair.low)}, {_mbps(pair.high)}], recorded {_mbps(pair.recorded)} Mbit/s"
        )


def _show_worst(flows: Sequence[FlowScore]) -> None:
    from validation.captures.lines import worst

    for flow in worst(flows, lambda flow: flow.losses.wrong + flow.losses.missed):
        counts = flow.losses
        echo(f"losses: {flow.run}, {flow.side}: {counts.right} right, {counts.wrong} wrong, {counts.missed} missed")
    for flow in worst(flows, lambda flow: flow.unknown_lost):
        echo(f"losses: {flow.run}, {flow.side}: {flow.unknown_lost} of {flow.lost} are of unknown fate")
    for flow in worst(flows, _cause_errors):
        echo(f"causes: {flow.run}, {flow.side}: {_cause_errors(flow):.0f} wrong or missed")
    for flow in worst(flows, lambda flow: flow.windows.quantile(0.95) or 0.0):
        echo(f"windows: {flow.run}, {flow.side}: 95th percentile of the error {flow.windows.quantile(0.95):.1%}")
    for flow in worst(flows, _channel_errors):
        echo(f"channel: {flow.run}: {_channel_errors(flow):.0f} losses with a wrong cause or missed")
    for flow in flows:
        for note in flow.notes:
            echo(f"note: {flow.run}, {flow.side}: {note}")


def _show_worst_runs(runs: Sequence[RunResult]) -> None:
    from validation.captures.lines import checks_of, engine_errors

    found = [(engine_errors(flow), flow.subject, checks_of(flow.checks)) for run in runs for flow in run.flows]
    for errors, subject, checks in sorted(found, key=lambda one: -max(one[0], default=0.0))[:8]:
        if not errors:
            continue
        shown = ", ".join(f"{name} {checks[name].relative:+.1%}" for name in ENGINE_METRICS if name in checks)
        echo(f"engine: {subject}: {shown}")


def _cause_errors(flow: FlowScore) -> float:
    return sum(counts.wrong + counts.missed for counts in flow.causes.by_cause.values())


def _channel_errors(flow: FlowScore) -> float:
    return 0 if flow.link is None else sum(counts.wrong + counts.missed for counts in flow.link.causes.values())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _mbps(bps: float | None) -> str:
    return "-" if bps is None else f"{bps / 1e6:.3g}"
