"""Writes docs/channels/parameters.md: every key of every channel model, as the code has it.

`python -m docs.scripts.make_channel_parameters` writes the page; a test compares it.
"""

from __future__ import annotations

from pathlib import Path

from docs.scripts.key_table import key_table
from hindflight.channels.models.reference import ModelReference, model_references

PAGE = Path(__file__).resolve().parents[2] / "docs" / "channels" / "parameters.md"

PAGES = {
    "four_state": "markov",
    "gilbert_elliott_time": "markov",
    "markov_time": "markov",
    "arq": "protect",
    "fec": "protect",
    "slots": "handover",
}
"""Models whose page has another name."""

INTRO = """# All parameters of the channel models

    hindflight channel models           # this list
    hindflight channel models street    # one model

The page of each model says what its keys mean and where its defaults come from. A key with a dot is a key of a table:
`satellite.geo` is written `satellite = { geo = -96.0 }`. `none`: without it the key has no value.

`python -m docs.scripts.make_channel_parameters` writes this page from the code.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([INTRO, *(_section(model) for model in model_references())])


def _section(model: ModelReference) -> str:
    meanings = f"Meanings: [{model.name}]({PAGES.get(model.name, model.name)}.md)."
    summary = f"{model.summary} It advances {model.advances}. {meanings}"
    return "\n".join([f"## `{model.name}`", "", summary, "", *key_table(model.keys), ""])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
