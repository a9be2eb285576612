"""The list of all keys of a scenario file: what it says about a key is what a file accepts."""

from __future__ import annotations

import re
import tomllib

import pytest

from docs.scripts.make_scenario_keys import PAGE, page
from hindflight.channels.models.parameters import Parameters
from hindflight.replay.catalogue import engine_variant_names
from hindflight.replay.scenario import reference
from hindflight.replay.scenario.flows import STACK
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.replay.scenario.reference import scenario_tables
from hindflight.toolkit.errors import ScenarioError

TABLES = {table.heading: {key.name: key for key in table.keys} for table in scenario_tables()}


def test_the_page_is_written_from_the_code() -> None:
    assert PAGE.read_text() == page(), "stale: python -m docs.scripts.make_scenario_keys"


def test_every_key_of_the_file_and_of_the_stack_is_listed() -> None:
    assert set(TABLES["the file"]) == set(Scenario.model_fields)
    assert set(TABLES["Stack"]) == set(STACK)


def subclasses(kind: type) -> set[str]:
    below: list[type] = kind.__subclasses__()
    return {kind.__name__}.union(*(subclasses(each) for each in below))


@pytest.mark.filterwarnings("ignore::pydantic.json_schema.PydanticJsonSchemaWarning")
def test_every_table_that_a_file_may_hold_is_listed() -> None:
    elsewhere = {"VariantParameters"} | subclasses(Parameters)  # docs/variants, docs/channels/parameters.md
    held = set(Scenario.model_json_schema()["$defs"]) - elsewhere
    assert held <= {kind.__name__ for _, kind, _ in reference._TABLES}


def test_keys_have_their_quantity_bounds_and_default() -> None:
    rate, outage, sender = TABLES["[[links]]"]["rate"], TABLES["changes"]["outage"], TABLES["[[flows]]"]["from"]
    assert rate.allowed == 'a rate, as "1 Mbit/s", at least 8 bit/s, at most 10000 Gbit/s'
    assert (outage.allowed, sender.allowed) == ("true or false", "a text")
    assert TABLES['queue = { kind = "drop_tail" }']["limit"].default == '"1000 pkts"'
    assert TABLES["[compare]"]["proxies"].default == '["none"]'


def link(**given: object) -> dict[str, object]:
    return {
        "name": "listed",
        "duration": "10 s",
        "path": ["a", "b"],
        "links": [{"name": "ab", "delay": "1 ms", **given}],
        "compare": {"variants": ["reno"]},
    }


@pytest.mark.parametrize("heading", ["[[links]]", "[compare]", "[keep]", "[flow]"])
def test_a_file_with_all_listed_defaults_is_the_file_without_them(heading: str) -> None:
    written = [f"{key.name} = {key.default}" for key in TABLES[heading].values() if key.default not in {None, "none"}]
    table = tomllib.loads("\n".join(written))
    plain = link()
    if heading == "[[links]]":
        given = link(**table)
    else:
        name = heading.strip("[]")
        given = {**plain, name: {**dict(plain.get(name, {})), **table}}  # type: ignore[call-overload]
    assert parse_scenario(given, "x", engine_variant_names()) == parse_scenario(plain, "x", engine_variant_names())


def test_a_value_beyond_a_listed_bound_is_refused() -> None:
    highest = re.search(r"at most (.*)$", TABLES["[[links]]"]["rate"].allowed)
    assert highest is not None
    number, unit = highest[1].split()
    parse_scenario(link(rate=highest[1]), "x", engine_variant_names())
    with pytest.raises(ScenarioError):
        parse_scenario(link(rate=f"{float(number) * 1.1} {unit}"), "x", engine_variant_names())
