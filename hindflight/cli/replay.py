"""`hindflight replay SCENARIO -w WORKSPACE`: run a scenario and keep its tables."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.output import AsJson, Row, command_line, print_json, print_table, progress_on_stderr, say

if TYPE_CHECKING:
    from hindflight.replay.experiment.experiment import Study
    from hindflight.replay.scenario.model import Scenario
    from hindflight.toolkit.workspace import Workspace

Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads; without it one per processor.")]

_AS_CAPTURED = "as captured kbit/s"
_COLUMNS = ("variant", "proxy", _AS_CAPTURED, "mean kbit/s", "95 % interval", "gain %", "RTOs per run")
_SHARING = ("flow", "mean kbit/s", "95 % interval", "lost %")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(replay)


def replay(
    scenario: Annotated[Path, typer.Argument(help="Scenario file (TOML).")],
    workspace: Annotated[Path, typer.Option("-w", "--workspace", help="Workspace to write to; made if need be.")],
    pcap: Annotated[
        Path | None, typer.Option("--pcap", help="Folder for captures at each node of the recorded runs.")
    ] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Replay a scenario: the captured variant first if its capture is in the workspace, then all to compare.

    The runs take the place of an earlier replay's in the same workspace.
    """
    from hindflight.toolkit.workspace import Workspace
    from hindflight.workflow import captured_flow, read_scenario

    loaded = read_scenario(scenario)
    kept = Workspace.open_or_create(workspace)
    study = run(kept, loaded, scenario.parent, threads, pcap)
    if loaded.captured is not None and captured_flow(kept, loaded) is None:
        say(f"no self-check: {loaded.captured.input} is not in {workspace}; ingest it there first")
    show(study, as_json)
    if pcap is not None:
        say(f"wrote {len(study.captures)} captures to {pcap}")


def run(
    workspace: Workspace, scenario: Scenario, folder: Path, threads: int | None, captures: Path | None = None
) -> Study:
    """Replay into the workspace with progress on stderr."""
    from hindflight.replay.experiment.experiment import Execution
    from hindflight.workflow import replay_into

    with progress_on_stderr() as report:
        label = Path("replays")
        execution = Execution(threads, lambda done, total: report(label, done / max(total, 1)), captures)
        return replay_into(workspace, scenario, folder, command_line(), execution)


def show(study: Study, as_json: bool) -> None:
    """Print the self-check, the comparison, each flow that shared the path, and what connections were reset."""
    findings = study.tables["findings"].to_pylist()
    if as_json:
        print_json({"findings": findings, "runs": study.tables["runs"].to_pylist()})
        return
    for row in findings:
        if row["section"] == "self_check" and row["text"]:
            print(row["text"])
    modes = {run["channel_mode"] for run in study.tables["runs"].to_pylist() if run["purpose"] == "what_if"}
    print_table([name for name in _COLUMNS if name != _AS_CAPTURED or "replayed" in modes], _comparison(study))
    print(_how_to_read(modes))
    if sharing := _sharing(findings):
        print()
        print_table(_SHARING, sharing, "Each flow that shared the path")
        print("lost %: data packets, for each one sent.")
    for row in findings:
        if row["section"] == "what_if" and row["metric"] == "resets":
            print(row["text"])


def _how_to_read(modes: set[str]) -> str:
    """Say what the columns are, for runs over channels of these modes."""
    words = ["as captured: over the trace as it was"] if "replayed" in modes else []
    words += ["mean: over its blocks drawn anew, one run per seed"] if "resampled" in modes else []
    words += ["mean: one run for each seed, which draws the channel from its model"] if "model" in modes else []
    words += ["gain: over the first row, paired by seed"] if modes != {"replayed"} else []
    return textwrap.fill(f"{'; '.join(words)}. Intervals are 95 %, of the mean.", 105)


def _sharing(findings: list[Row]) -> list[Row]:
    """Return a row for each flow that shared the path, of every variant and proxy."""
    found = {(row["subject"], row["metric"]): row for row in findings if row["section"] == "sharing"}
    rows = []
    for subject in dict.fromkeys(subject for subject, _ in found):
        mean, lost = found.get((subject, "goodput")), found.get((subject, "lost_packets"))
        share = "-" if lost is None else f"{lost['value']:.2f}"
        rows.append(dict(zip(_SHARING, (subject, _kbps(mean, "value"), _interval(mean), share), strict=True)))
    return rows


def _comparison(study: Study) -> list[Row]:
    from hindflight.toolkit.schema import run_subject

    found = {
        (row["subject"], row["metric"]): row
        for row in study.tables["findings"].to_pylist()
        if row["section"] == "what_if"
    }
    runs = [run for run in study.tables["runs"].to_pylist() if run["purpose"] == "what_if" and run["role"] == "studied"]
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
            _interval(mean),
            "reference" if (variant, proxy) == study.reference else _gain(gain),
            f"{sum(run['rtos'] for run in mine) / len(mine):.1f}",
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
        return "not told: reset"
    bounds = "" if row["low"] is None else f" ({row['low']:+.1f} to {row['high']:+.1f})"
    return f"{row['value']:+.1f}{bounds}"
