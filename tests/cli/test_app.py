"""Only the commands that a command line can reach are built."""

from __future__ import annotations

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
