"""Writes docs/reference/scenario-keys.md: every key of a scenario file, as the code has it.

`python -m docs.scripts.make_scenario_keys` writes the page; a test compares it.
"""

from __future__ import annotations

from pathlib import Path

from docs.scripts.key_table import key_table
from hindflight.replay.scenario.reference import Table, scenario_tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenario-keys.md"

INTRO = """# All keys of a scenario file

[Scenario files](../scenario.md) says what the keys mean, [TCP variants](../variants/README.md) lists the keys of
`[variants.NAME]`, [channel models](../channels/parameters.md) those of `loss` and `channel`. `none`: without it the key
has no value; a key of the stack is then as the profile has it ([profiles](../profiles.md)).

`python -m docs.scripts.make_scenario_keys` writes this page from the code.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([INTRO, *(_section(table) for table in scenario_tables())])


def _section(table: Table) -> str:
    more = f" It also has the keys of `{table.base}`." if table.base else ""
    return "\n".join([f"## `{table.heading}`", "", f"{table.summary}{more}", "", *key_table(table.keys), ""])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
