"""The `hindflight` command: its subcommands, one module each, and nothing heavy until one of them runs.

To add a command, write `hindflight/cli/NAME.py` with a function `register(app)` and add NAME to `COMMANDS`. Such a
module imports typer and its neighbours here at the top and everything else inside its functions: `--help` stays
under 0.2 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from hindflight.cli.errors import run

COMMANDS = (
    "info",
    "ingest",
    "flows",
    "segments",
    "events",
    "series",
    "limits",
    "verdicts",
    "score",
    "channel",
    "scenario",
    "replay",
    "whatif",
    "place",
    "reproduce",
    "batch",
    "compare",
    "report",
    "export",
    "demo",
    "query",
    "variants",
    "explain",
)


def _version(wanted: bool) -> None:
    if wanted:
        from hindflight.toolkit.version import hindflight_version

        typer.echo(f"hindflight {hindflight_version()}")
        raise typer.Exit


def _root(
    context: typer.Context,
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; allowed anywhere on the command line.")
    ] = False,
) -> None:
    """Analyse TCP captures from links that fly, and replay other TCP variants over the same channel."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def build(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """Return the application with the commands `names`."""
    app = typer.Typer(
        name="hindflight",
        callback=_root,
        invoke_without_command=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in names:
        import_module(f"hindflight.cli.{name}").register(app)
    return app


def main(arguments: list[str]) -> int:
    """Run the command line `arguments` (without the program's name) and return the exit code."""
    return run(lambda words: build(needed(words))(words, prog_name="hindflight", standalone_mode=False), arguments)


def needed(words: Sequence[str]) -> Sequence[str]:
    """Return the commands that the command line `words` can reach: to build all of them takes longer than most run."""
    at = next((i for i, word in enumerate(words) if not word.startswith("-")), len(words))
    if at == len(words) or words[at] not in COMMANDS or not {"-h", "--help"}.isdisjoint(words[:at]):
        return COMMANDS
    return (words[at],)
