from __future__ import annotations

import pytest

from hindflight.reports import style
from hindflight.reports.style import DARK, PAGES, Mode, category_colours, recolour, vega_config

LINES = (*style.CATEGORIES, style.BLUE, style.VERMILLION, style.GREEN, style.PURPLE, style.AMBER, style.SKY, style.INK)


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_lines_and_text_have_enough_contrast(mode: Mode) -> None:
    page = PAGES[mode]
    for colour in LINES:
        drawn = colour if mode == "light" else DARK[colour]
        assert contrast(drawn, page.paper) >= 3, colour
    assert contrast(page.text, page.paper) >= 7
    assert contrast(page.faint, page.paper) >= 4.5


def test_recolour_maps_colours_of_marks_but_not_data() -> None:
    spec = {"mark": {"color": style.BLUE}, "datasets": {"d": style.BLUE}, "config": {"range": [style.INK]}}
    assert recolour(spec, "light") == spec
    dark = recolour(spec, "dark")
    assert dark["mark"]["color"] == DARK[style.BLUE]
    assert dark["config"]["range"] == [DARK[style.INK]]
    assert dark["datasets"] == spec["datasets"]


def test_no_dark_colour_equals_a_light_one() -> None:
    assert not set(DARK) & set(DARK.values())


def test_category_colours_repeat_after_the_last() -> None:
    count = len(style.CATEGORIES)
    assert len(set(style.CATEGORIES)) == count
    assert category_colours(count + 2)[count:] == category_colours(2)


def test_configuration_has_the_colours_of_the_page() -> None:
    assert vega_config("dark")["background"] == PAGES["dark"].paper
    assert vega_config("light")["axis"]["titleColor"] == PAGES["light"].text
