"""`hindflight export SOURCE --format FORMAT -o OUT`: packets, graphs or tables in the format of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.output import AsJson, Force, print_json, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    source: Annotated[Path, typer.Argument(help="Capture, workspace, or scenario (pcapng: a file per node).")],
    form: Annotated[str, typer.Option("--format", help="pcapng, xpl, web100, csv, jsonl, parquet or sqlite.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write; a folder for xpl and for several tables.")],
    flow: Annotated[int | None, typer.Option("--flow", help="One flow, as `hindflight flows` numbers it.")] = None,
    run: Annotated[
        int | None, typer.Option("--run", help="Replay run; 0 is the capture [default: the first, of tables all].")
    ] = None,
    table: Annotated[str, typer.Option("--table", help="One table (csv, jsonl, parquet).")] = "",
    anonymize: Annotated[bool, typer.Option("--anonymize", help="Map addresses, prefix-preservingly.")] = False,
    key: Annotated[
        Path | None, typer.Option("--key", help="File of the key; made if missing [default: next to the output].")
    ] = None,
    at_sender: Annotated[
        bool, typer.Option("--at-sender", help="Rebuild a capture at the receiver as its sender's would be (pcapng).")
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Export packets, graphs or tables. Packets are headers alone, with the findings as comments for Wireshark."""
    from hindflight.exporting import Request, export_source
    from hindflight.toolkit.text import name_to_text

    written = export_source(source, out, Request(form, flow, run, table, anonymize, key, at_sender, force))
    if as_json:
        print_json({"files": [name_to_text(path) for path in written]})
    elif len(written) == 1:
        say(f"wrote {written[0]}")
    else:
        say(f"wrote {len(written)} files to {out}")
