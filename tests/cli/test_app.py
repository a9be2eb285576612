"""Only the commands that a command line can reach are built, in a process that seldom looks for garbage in cycles."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from hindflight.cli.app import COMMANDS, build, needed


def names_of(app: typer.Typer) -> list[str]:
    return list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_every_module_registers_the_command_of_its_name() -> None:
    assert sorted(names_of(build())) == sorted(COMMANDS)
    assert all(names_of(build((name,))) == [name] for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["flows", "query"], ("flows",)),
        (["--debug", "channel", "synth", "--help"], ("channel",)),
        (["--help"], COMMANDS),
        (["-h", "whatif"], COMMANDS),
        ([], COMMANDS),
        (["flowz"], COMMANDS),
        (["flowz", "flows"], COMMANDS),
    ],
)
def test_the_first_word_names_the_command(words: list[str], expected: tuple[str, ...]) -> None:
    assert tuple(needed(words)) == expected


def test_the_command_looks_for_garbage_in_cycles_less_often_than_python_does_and_the_library_changes_nothing() -> None:
    script = (
        "import gc, sys; usual = gc.get_threshold(); import hindflight, hindflight.__main__ as m\n"
        "assert gc.isenabled() and gc.get_threshold() == usual\n"
        "sys.argv[1:] = ['--version']; m.main(); print(*usual); print(*gc.get_threshold())"
    )
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    usual, now = ([int(word) for word in line.split()] for line in out.splitlines()[-2:])
    assert now[0] > 10 * usual[0]
    assert now[1:] == usual[1:]
