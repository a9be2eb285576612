"""`hindflight replay SCENARIO -w WORKSPACE`: run a scenario and keep its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.layout import Wide, paragraph, print_fitting
from hindflight.cli.output import AsJson, Force, Row, command_line, echo, print_json, progress_on_stderr, say
from hindflight.toolkit.errors import HindflightError

if TYPE_CHECKING:
    from hindflight.replay.experiment.experiment import Execution, ExperimentResult

Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads [default: one per processor].")]

_AS_CAPTURED = "as captured"
_COLUMNS = ("variant", "proxy", _AS_CAPTURED, "goodput", "gain %", "RTOs", "95 % interval")
_SHARING = ("flow", "mean kbit/s", "lost %", "delay ms", "95 % interval")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(replay)


def replay(
    scenario: Annotated[Path, typer.Argument(help="Scenario file (TOML).")],
    workspace: Annotated[
        Path, typer.Option("-w", "--workspace", help="Workspace to write to; created if it does not exist.")
    ],
    pcap: Annotated[Path | None, typer.Option("--pcap", hidden=True, help="Replaced by `hindflight export`.")] = None,
    threads: Threads = None,
    page: Annotated[
        Path | None, typer.Option("--report", help="Write the report on the workspace to this HTML file.")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Title of that report.")] = "",
    force: Force = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Replay a scenario and compare its variants.

    The captured variant runs first, as a self-check, if its capture is in the workspace.
    The runs replace those of an earlier replay in the same workspace.
    """
    from hindflight.toolkit.files import check_outputs
    from hindflight.toolkit.source import input_files
    from hindflight.toolkit.workspace import Workspace
    from hindflight.workflow import captured_flow, read_scenario, replay_into, write_report_of

    if pcap is not None:
        raise HindflightError(
            f"replay --pcap is now: hindflight export {scenario} --format pcapng -o {pcap}", "it writes a file per node"
        )
    loaded = read_scenario(scenario)
    kept = Workspace.open_or_create(workspace)
    if page is not None:
        check_outputs([page], [scenario, *input_files(kept)], force=force)
    with replay_progress(threads, force=force) as execution:
        result = replay_into(kept, loaded, scenario.parent, command_line(), execution)
    if loaded.captured is not None and captured_flow(kept, loaded) is None:
        say(f"no self-check: {loaded.captured.input} is not in {workspace}; ingest it there first")
    if page is not None:
        write_report_of(kept, page, title or f"Hindflight report: {workspace.name}", utc=False, force=force)
    show(result, as_json, wide)
    if page is not None:
        say(f"report: {page}")


@contextmanager
def replay_progress(threads: int | None, *, force: bool) -> Iterator[Execution]:
    """Give the execution of a replay that reports its progress on stderr."""
    with progress_on_stderr() as report:
        yield execution_with(report, threads, force=force)


def execution_with(report: Callable[[Path, float], None], threads: int | None, *, force: bool) -> Execution:
    """Return the execution of a replay that reports its progress to `report`."""
    from hindflight.replay.experiment.experiment import Execution

    label = Path("replays")
    return Execution(threads, lambda done, total: report(label, done / max(total, 1)), force=force)


def show(result: ExperimentResult, as_json: bool, wide: bool) -> None:
    """Print the self-check, the comparison, each flow that shared the path, what connections were reset or refused, and
    what data proxies lost or damaged."""
    from hindflight.toolkit.schema import DAMAGE_METRICS

    findings = result.tables["findings"].to_pylist()
    if as_json:
        document = {"findings": findings, "runs": result.tables["runs"].to_pylist()}
        if result.variant is not None:
            document["captured_variant"] = {"name": result.variant[0], "probability": result.variant[1]}
        print_json(document)
        return
    for row in findings:
        if row["section"] == "self_check" and row["text"]:
            paragraph(row["text"])
    modes = {run["channel_mode"] for run in result.tables["runs"].to_pylist() if run["purpose"] == "what_if"}
    names = [name for name in _COLUMNS if name != _AS_CAPTURED or "replayed" in modes]
    print_fitting(names, _comparison(result), wide, "Goodput in kbit/s")
    goodputs = [row for row in findings if row["section"] == "what_if" and row["metric"] == "goodput"]
    predicted = any(row["text"] for row in goodputs)
    paragraph(_how_to_read(modes, predicted))
    if sharing := _sharing(findings):
        echo()
        print_fitting(_SHARING, sharing, wide, "Flows that shared the path")
        paragraph(
            "lost %: share of the data packets sent. delay: median and 99th percentile of what an application sees."
        )
    ends = {"resets", *DAMAGE_METRICS}
    for row in findings:
        if (row["section"] == "what_if" and row["metric"] in ends) or row["metric"] == "refused":
            paragraph(row["text"])


def _how_to_read(modes: set[str], predicted: bool) -> str:
    """Say what the columns are, for runs over channels of these modes; `predicted`: of a captured flow."""
    words = ["as captured: over the trace as extracted"] if "replayed" in modes else []
    if predicted and "resampled" in modes:
        words += [
            "goodput: what one flight would show, the median of a draw per seed of what the capture leaves open, less "
            "half of the misfit of the captured variant"
        ]
    elif "resampled" in modes:
        words += ["goodput: mean over the trace with its blocks resampled, one run per seed"]
    words += ["goodput: mean of one run per seed, over channels generated by the model"] if "model" in modes else []
    if modes != {"replayed"}:
        words += ["gain: of the mean over the first row, paired by seed, with its 95 % interval"]
    return f"{'; '.join(words)}; RTOs: timeouts per run."


def _sharing(findings: list[Row]) -> list[Row]:
    """Return a row for each flow that shared the path, of every variant and proxy."""
    found = {(row["subject"], row["metric"]): row for row in findings if row["section"] == "sharing"}
    rows = []
    for subject in dict.fromkeys(subject for subject, _ in found):
        mean, lost = found.get((subject, "goodput")), found.get((subject, "lost_packets"))
        share = "-" if lost is None else f"{lost['value']:.2f}"
        delays = [found.get((subject, f"application_delay_{end}")) for end in ("p50", "p99")]
        ends = " to ".join(f"{row['value'] / 1e6:.0f}" for row in delays if row is not None)
        row = (subject, _kbps(mean, "value"), share, ends or "-", _interval(mean))
        rows.append(dict(zip(_SHARING, row, strict=True)))
    return rows


def _comparison(result: ExperimentResult) -> list[Row]:
    from hindflight.toolkit.schema import run_subject

    found = {
        (row["subject"], row["metric"]): row
        for row in result.tables["findings"].to_pylist()
        if row["section"] == "what_if"
    }
    runs = [
        run for run in result.tables["runs"].to_pylist() if run["purpose"] == "what_if" and run["role"] == "under_test"
    ]
    rows = []
    for variant, proxy in dict.fromkeys((run["variant"], run["proxy"]) for run in runs):
        mine = [run for run in runs if (run["variant"], run["proxy"]) == (variant, proxy)]
        subject = run_subject(variant, proxy)
        as_captured, mean = found.get((subject, "goodput_as_captured")), found.get((subject, "goodput"))
        gain = found.get((subject, "goodput_gain"))
        values = (
            variant,
            proxy,
            _kbps(as_captured, "value"),
            _kbps(mean, "value"),
            "reference" if (variant, proxy) == result.reference else _gain(gain),
            f"{sum(run['rtos'] for run in mine) / len(mine):.1f}",
            _interval(mean),
        )
        rows.append(dict(zip(_COLUMNS, values, strict=True)))
    return rows


def _kbps(row: Row | None, key: str) -> str:
    return "-" if row is None or row[key] is None else f"{row[key] / 1e3:.0f}"


def _interval(row: Row | None) -> str:
    return "-" if row is None or row["low"] is None else f"{_kbps(row, 'low')} to {_kbps(row, 'high')}"


def _gain(row: Row | None) -> str:
    if row is None:
        return "-"
    if row["value"] is None:
        return "n/a (connection reset)"
    bounds = "" if row["low"] is None else f" ({row['low']:+.1f} to {row['high']:+.1f})"
    return f"{row['value']:+.1f}{bounds}"
