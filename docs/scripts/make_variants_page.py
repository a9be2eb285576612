"""Writes docs/variants/README.md: every variant with family, source and year as the catalogue tells them.

`python -m docs.scripts.make_variants_page` writes the page; a test compares it.
"""

from __future__ import annotations

from pathlib import Path

from hindflight.replay.catalogue import Variant, catalogue

PAGE = Path(__file__).resolve().parents[2] / "docs" / "variants" / "README.md"

INTRO = """# TCP variants

    hindflight variants          # this list
    hindflight variants hybla    # one variant: its parameters with unit, allowed values, default and source

Each can be replayed in place of the captured one, and on either side of a split proxy. Its page has the equations,
where they come from, what differs from the source, and a picture that overlays the engine and a reference. A
controller of your own stands beside them: [CONTRIBUTING](../../CONTRIBUTING.md) shows how, in Rust and in Python.

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
