"""The numbers in README.md are those of the demo, and its commands exist."""

from __future__ import annotations

import re

from docs.scripts.make_readme_numbers import PAGE, page
from hindflight.cli.app import COMMANDS


def test_the_numbers_are_those_of_the_demo() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "README.md is stale: python -m docs.scripts.make_readme_numbers"


def test_the_commands_exist() -> None:
    named = set(re.findall(r"^ {4}hindflight (\w+)", PAGE.read_text(), re.MULTILINE))
    assert named
    assert named <= set(COMMANDS)
