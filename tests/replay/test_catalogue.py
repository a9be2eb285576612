"""The catalogue of variants, its command and its pages agree."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from docs.scripts.make_variants_page import PAGE, page
from hindflight.cli.app import main
from hindflight.replay.catalogue import catalogue, find_variant
from hindflight.replay.scenario.model import check_variant
from hindflight.toolkit.errors import HindflightError, ScenarioError

PAGES = Path(__file__).resolve().parents[2] / "docs" / "variants"


def test_every_variant_has_a_page_that_names_its_parameters_and_no_page_is_left_over() -> None:
    pages = {page.stem: page.read_text() for page in PAGES.glob("*.md") if page != PAGE}
    assert set(pages) == {variant.name for variant in catalogue()}
    for variant in catalogue():
        for parameter in variant.parameters:
            named = re.search(rf"\b{parameter.name}\b", pages[variant.name], re.IGNORECASE)
            assert named, f"{variant.name}: {parameter.name}"


def test_every_page_shows_a_picture_that_is_there() -> None:
    for variant in catalogue():
        shown = re.findall(r"^!\[[^]]+\]\((\S+\.svg)\)$", (PAGES / f"{variant.name}.md").read_text(), re.MULTILINE)
        assert shown, variant.name
        for picture in shown:
            assert (PAGES / picture).is_file(), f"{variant.name}: {picture}"


def test_the_list_of_pages_says_what_the_catalogue_says() -> None:
    assert PAGE.read_text() == page(), "docs/variants/README.md is stale: python -m docs.scripts.make_variants_page"


def test_every_parameter_has_a_source_and_a_default_that_is_allowed() -> None:
    for variant in catalogue():
        for parameter in variant.parameters:
            assert parameter.source, parameter
            assert parameter.meaning, parameter
            low, dots, high = parameter.allowed.partition("..")
            if dots:
                assert float(low) <= float(parameter.default) <= float(high), parameter
            else:
                assert parameter.default in parameter.allowed.split(", "), parameter


def test_only_freeze_tcp_needs_a_forecast() -> None:
    assert [variant.name for variant in catalogue() if variant.needs_forecast] == ["freeze-tcp"]


def test_the_command_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["variants"]) == 0
    shown = capsys.readouterr().out
    assert {variant.name for variant in catalogue()} <= {line.split(" ")[0] for line in shown.splitlines()}
    assert main(["variants", "vegas", "--json"]) == 0
    (vegas,) = json.loads(capsys.readouterr().out)["variants"]
    assert vegas["year"] == 1995
    assert {p["name"]: p["default"] for p in vegas["parameters"]} == {"alpha": "2", "beta": "4", "gamma": "1"}


def test_a_typo_suggests_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(HindflightError, match="there is no variant westwod-plus"):
        find_variant("westwod-plus")
    assert main(["variants", "westwod-plus"]) == 2
    assert "did you mean 'westwood-plus'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ctcp", "compound"), ("CTCP", "compound"), ("hstcp", "highspeed"), ("stcp", "scalable"),
        ("westwood+", "westwood-plus"),
        ("bbrv1", "bbr"), ("bbrv3", "bbr3"), ("newreno-sack", "sack"), ("reno-linux", "linux-reno"),
        ("tcpw-abse", "westwood-abse"), ("freeze", "freeze-tcp"), ("scps", "scps-tp"), ("h-tcp", "htcp"),
    ],
)  # fmt: skip
def test_another_name_of_a_variant_suggests_it_and_is_refused(
    name: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["variants", name]) == 2
    shown = capsys.readouterr().err
    assert f"there is no variant {name}\n" in shown
    assert f"did you mean {meant!r}?\n" in shown
    said = f"compare.variants\\[0\\]: unknown variant {name!r}; did you mean {meant!r}\\?$".replace("+", "\\+")
    known = tuple(variant.name for variant in catalogue())
    with pytest.raises(ScenarioError, match=said):
        check_variant("compare.variants[0]", name, known)


def test_other_names_are_shown_with_the_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["variants", "highspeed"]) == 0
    assert "; also called hstcp, hs-tcp\n" in capsys.readouterr().out
    assert main(["variants", "vegas"]) == 0
    assert "also called" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["westwood", "westwod"])
def test_a_name_that_several_begin_with_suggests_them_all_and_nonsense_none(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["variants", name]) == 2
    assert "did you mean 'westwood-plus' or 'westwood-bwe' or 'westwood-abse'?" in capsys.readouterr().err
    assert main(["variants", "nonsens"]) == 2
    shown = capsys.readouterr().err
    assert "did you mean" not in shown
    assert "there are reno, newreno" in shown
