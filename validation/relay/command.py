"""`python -m validation relay`: record two Linux stacks joined by a relay, and compare the engine's proxy with them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.output import AsJson, echo, print_json, print_table, progress_on_stderr, say

if TYPE_CHECKING:
    from validation.relay.judge import RelayResult


def relay(  # noqa: PLR0913, PLR0917 - options
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of recorded runs [default: record new ones, which needs root].")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed from which the paths are drawn.")] = 1,
    links: Annotated[int, typer.Option("--links", min=1, help="Paths to record.")] = 6,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Recordings of each path, with other losses.")] = 3,
    out: Annotated[Path | None, typer.Option("--out", help="Keep the recordings in this folder.")] = None,
    emulator: Annotated[
        Path | None,
        typer.Option("--emulator", help="Source of the link emulator [default: ../shared/testbed/linkemu.c]."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="With a folder: record each run that misses again, for its spread.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the split proxy with a relay between two Linux stacks. A failure is shown; it is not an error."""
    if folder is not None:
        if again:
            _record_again(folder, emulator)
        _judge(folder, as_json)
        return
    from validation.relay.testbed import EMULATOR, missing

    lacking = missing(emulator or EMULATOR)
    if lacking is not None:
        say(f"nothing is recorded, so the relay is not compared: {lacking}")
        if as_json:
            print_json({"skipped": lacking})
        return
    with tempfile.TemporaryDirectory(prefix="hf-relay-runs-") as scratch:
        runs = out or Path(scratch)
        _record(runs, (seed, links, repeats), emulator or EMULATOR)
        _judge(runs, as_json)


def _record(out: Path, drawn: tuple[int, int, int], emulator: Path) -> None:
    from validation.relay.links import draw
    from validation.relay.testbed import record

    seed, links, repeats = drawn
    jobs = [(draw(seed, number), repeat) for number in range(links) for repeat in range(1, repeats + 1)]
    with progress_on_stderr() as report:
        record(jobs, out, emulator, on_done=lambda done: report(Path("recording the relay"), done / len(jobs)))


def _record_again(folder: Path, emulator: Path | None) -> None:
    from validation.judge import failures
    from validation.relay.judge import validate_relay
    from validation.relay.recorded import read_drawn
    from validation.relay.spread import AGAIN, RECORDINGS
    from validation.relay.testbed import EMULATOR, missing, record

    without = missing(emulator or EMULATOR)
    if without is not None:
        say(f"nothing is recorded again: {without}")
        return
    missed = {id(result.spread): result for result in validate_relay(folder) if failures(result.checks)}
    drawn = [(read_drawn(folder / one.name), RECORDINGS - len(one.spread.recordings)) for one in missed.values()]
    first = 1 + max((int(made.name) for made in (folder / AGAIN).glob("*") if made.name.isdigit()), default=0)
    with progress_on_stderr() as report:
        for turn in range(max((lacking for _, lacking in drawn), default=0)):
            jobs = [job for job, lacking in drawn if turn < lacking]
            record(jobs, folder / AGAIN / str(first + turn), emulator or EMULATOR)
            report(folder, (turn + 1) / RECORDINGS)


def _judge(folder: Path, as_json: bool) -> None:
    from validation.judge import finding
    from validation.relay.judge import explain, validate_relay
    from validation.relay.readings import readings

    with progress_on_stderr() as report:
        results = validate_relay(folder, on_done=lambda done, of: report(folder, done / of))
    read = readings(results)
    if as_json:
        checks = [check for result in results for check in result.checks] + [one.check for one in read]
        runs = [{**asdict(result), "because": explain(result)} for result in results]
        counted = [{**asdict(one), "verdict": one.verdict} for one in read]
        print_json({"findings": [finding(check) for check in checks], "readings": counted, "runs": runs})
        return
    _show(results)
    print_table(list(read[0].row), [one.row for one in read], "In how many runs the engine holds the bounds")
    timed = sum(result.timed_holds for result in results)
    echo(f"with each packet as late as the emulator was, all window quartiles hold in {timed} of {len(results)} runs")


def _show(results: Sequence[RelayResult]) -> None:
    from validation.relay.judge import explain

    rows = [{**row(result), "because": explain(result) or "-"} for result in results]
    print_table(list(rows[0]), rows, "Two Linux stacks joined by a relay (kernel / engine)")


def row(result: RelayResult) -> dict[str, Any]:
    """Return the row of a run: goodput, quartiles of the window of each leg, mean octets held, and what fails."""
    kernel, engine = result.kernel, result.engine
    failed = [check.metric.replace("_cwnd", "") for check in result.checks if check.verdict != "pass"]
    legs = {
        f"leg {leg} {variant}": " / ".join(
            "-".join(f"{pkts:.0f}" for pkts in side.windows_pkts[leg]) for side in (kernel, engine)
        )
        for leg, variant in enumerate(("cwnd", "cwnd"))
    }
    return {
        "run": result.name,
        "variants": "+".join(result.variants),
        "kbit/s": f"{kernel.goodput_bps / 1e3:.0f} / {engine.goodput_bps / 1e3:.0f}",
        **legs,
        "held kB": f"{kernel.held_mean_bytes / 1e3:.0f} / {engine.held_mean_bytes / 1e3:.0f}",
        "fails": " ".join(failed) or "-",
    }
