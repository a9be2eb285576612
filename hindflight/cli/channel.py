"""`hindflight channel extract`: what the link did to a captured flow, as a trace that replays can use."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.convert import convert, show
from hindflight.cli.fit import fit
from hindflight.cli.layout import paragraph
from hindflight.cli.models import models
from hindflight.cli.output import AsJson, Force, echo, print_json, print_table, say
from hindflight.cli.quantities import interval, quantity, stretch_rows
from hindflight.cli.sensitivity import sensitivity
from hindflight.cli.synth import synth
from hindflight.cli.times import From, To, capture_span

if TYPE_CHECKING:
    from hindflight.channels.extraction.extract import Extraction


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Extract, generate, fit, convert, show and test channels.", no_args_is_help=True)
    group.command("extract")(extract)
    group.command("synth")(synth)
    group.command("fit")(fit)
    group.command("models")(models)
    group.command("convert")(convert)
    group.command("show")(show)
    group.command("sensitivity")(sensitivity)
    group.command("spread", hidden=True)(sensitivity)  # Its former name.
    app.add_typer(group, name="channel")


def extract(
    source: Annotated[Path, typer.Argument(help="Capture or workspace.")],
    flow: Annotated[
        int | None, typer.Option("--flow", help="Flow number [default: the flow with the most data].")
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the trace here (Parquet).")] = None,
    receiver: Annotated[
        Path | None, typer.Option("--receiver", help="Capture of the same connection at the receiver.")
    ] = None,
    from_: From = "",
    to: To = "",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Extract the channel from a capture. Losses, rate, delay and queue, from a capture at the sender."""
    from hindflight.captured_link import extract_channel, trace_of
    from hindflight.channels.formats import check_parquet_name
    from hindflight.channels.trace import write_trace
    from hindflight.toolkit.captured_flow import read_flow
    from hindflight.toolkit.files import check_outputs
    from hindflight.toolkit.source import files_of, open_source

    if out is not None:
        check_parquet_name(out)
        inputs = files_of(source) if receiver is None else [*files_of(source), receiver]
        check_outputs([out], inputs, force=force)
    with open_source(source, span=capture_span(source, from_, to)) as tables:
        chosen = read_flow(tables.workspace, flow)
        extraction = extract_channel(chosen, tables.workspace, receiver)
        if out is not None:
            write_trace(trace_of(extraction, tables.workspace, chosen), out, force=force)
    if as_json:
        print_json(_document(chosen.flow_id, extraction))
    else:
        _print(chosen.flow_id, extraction)
    if out is not None:
        say(f"wrote {out}")


def _document(flow_id: int, extraction: Extraction) -> dict[str, Any]:
    return {
        "flow_id": flow_id,
        "estimates": [asdict(e) for e in extraction.estimates],
        "stretches": [asdict(one) for one in extraction.stretches],
        "counts": extraction.counts,
        "unknowns": list(extraction.unknowns),
    }


def _print(flow_id: int, extraction: Extraction) -> None:
    names = ("estimate", "value", "95 % interval", "known")
    rows = []
    for e in extraction.estimates:
        cells = (e.name, quantity(e.value, e.unit), interval(e), "yes" if e.known else "no")
        rows.append(dict(zip(names, cells, strict=True)))
    print_table(names, rows, title=f"Link of flow {flow_id}")
    columns, listed = stretch_rows(extraction.stretches)
    print_table(columns, listed, title="The link between its steps")
    counted = {name: count for name, count in extraction.counts.items() if count or name == "lost"}
    print_table(("packets", "count"), [{"packets": n, "count": c} for n, c in counted.items()])
    echo("How it was found:")
    for e in extraction.estimates:
        paragraph(f"  {e.name}: {e.how}", "    ")
    echo("Not known:")
    for sentence in extraction.unknowns:
        paragraph(f"  {sentence}", "    ")
