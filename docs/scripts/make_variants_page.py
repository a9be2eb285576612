"""Writes docs/variants/README.md: every variant with family, source and year as in the catalogue.

`python -m docs.scripts.make_variants_page` writes the page; a test compares it.
"""

from __future__ import annotations

from pathlib import Path

from hindflight.replay.catalogue import Variant, catalogue

PAGE = Path(__file__).resolve().parents[2] / "docs" / "variants" / "README.md"

INTRO = """# TCP variants

    hindflight variants          # this list
    hindflight variants hybla    # one variant: its parameters with unit, allowed values, default and source

Each variant can replace the captured one in a replay, and can run on either side of a split proxy. Its page has the
equations, their sources, the differences from the source, and a plot that compares the engine with a reference.
[CONTRIBUTING](../../CONTRIBUTING.md) shows how to add a variant, in Rust or in Python.

`python -m docs.scripts.make_variants_page` writes this page from the catalogue.

| variant | family | year | source | what it does |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the whole page."""
    return INTRO + "".join(f"{_line(variant)}\n" for variant in catalogue())


def _line(variant: Variant) -> str:
    name = f"[{variant.name}]({variant.name}.md)"
    return f"| {name} | {variant.family} | {variant.year} | {variant.source} | {variant.summary} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
