"""The pages of docs/channels name every key of the models with its default, and their examples are what they say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter

from hindflight.channels.models.budget import free_space_db
from hindflight.channels.models.canyon import Law
from hindflight.channels.models.handover import Handover, Slots, Step
from hindflight.channels.models.link_layer import Arq, Fec
from hindflight.channels.models.lms import Lms, ShadowState
from hindflight.channels.models.losses import (
    Bernoulli,
    BitErrors,
    FourState,
    GilbertElliott,
    GilbertElliottTime,
    Markov,
    MarkovTime,
)
from hindflight.channels.models.parameters import parse
from hindflight.channels.models.signal import Budget, Rain, Signal
from hindflight.channels.models.street import Diffraction, Satellite, Street
from hindflight.channels.models.synth import ANY_MODEL
from hindflight.channels.models.track import End, Lane, Track
from hindflight.channels.models.uav import Uav

DOCS = Path(__file__).parents[3] / "docs" / "channels"

TABLES: dict[str, tuple[str, type[BaseModel]]] = {
    "bernoulli": ("bernoulli.md", Bernoulli),
    "ber": ("ber.md", BitErrors),
    "gilbert_elliott": ("gilbert_elliott.md", GilbertElliott),
    "four_state": ("markov.md", FourState),
    "markov": ("markov.md", Markov),
    "gilbert_elliott_time": ("markov.md", GilbertElliottTime),
    "markov_time": ("markov.md", MarkovTime),
    "arq": ("protect.md", Arq),
    "fec": ("protect.md", Fec),
    "handover": ("handover.md", Handover),
    "steps": ("handover.md", Step),
    "slots": ("handover.md", Slots),
    "street": ("street.md", Street),
    "satellite": ("street.md", Satellite),
    "diffraction": ("street.md", Diffraction),
    "lms": ("lms.md", Lms),
    "states": ("lms.md", ShadowState),
    "signal": ("signal.md", Signal),
    "rain": ("signal.md", Rain),
    "budget": ("budget.md", Budget),
    "track": ("track.md", Track),
    "near": ("track.md", End),
    "track.street": ("track.md", Lane),
    "uav": ("uav.md", Uav),
}
"""By the name in the heading: the page, and the class whose keys the table below that heading lists."""

UNLISTED = {Law}
"""Distributions: their keys depend on the distribution, and the page of the street names them in a sentence."""


def rows(page: str, name: str) -> dict[str, str]:
    """Keys and defaults of the table below the heading "Parameters of `name`"."""
    after = re.split(rf"^## Parameters of `{re.escape(name)}`.*\n", (DOCS / page).read_text(), flags=re.MULTILINE)[1]
    found: dict[str, str] = {}
    for line in after.split("\n## ", 1)[0].splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if line.startswith("| `"):
            for key in re.findall(r"`(\w+)`", cells[0]):
                found[key] = cells[1]
    return found


def tables_of(kind: Any, found: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """All tables of parameters that a type mentions."""
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in found:
        found.add(kind)
        for field in kind.model_fields.values():
            tables_of(field.annotation, found)
    for argument in get_args(kind):
        tables_of(argument, found)
    return found


def test_every_model_has_its_tables() -> None:
    listed = {kind for _, kind in TABLES.values()}
    assert tables_of(ANY_MODEL, set()) == listed | UNLISTED


@pytest.mark.parametrize("name", TABLES)
def test_every_key_of_a_model_is_on_its_page_with_its_default(name: str) -> None:
    page, kind = TABLES[name]
    fields = {field.alias or key: field for key, field in kind.model_fields.items() if key != "model"}
    said = rows(page, name)
    assert set(said) == set(fields)
    for key, field in fields.items():
        if said[key].startswith("as in "):  # Another page has it.
            continue
        if field.is_required():
            assert said[key] == "required", key
        elif field.default is None:
            assert said[key].startswith("none"), key
        else:
            (literal,) = re.findall(r"^`(.*)`$", said[key])
            metadata: Any = field.rebuild_annotation()
            value = TypeAdapter(metadata).validate_python(tomllib.loads(f"x = {literal}")["x"])
            assert value == field.default, key


def test_the_worked_example_of_a_link_budget() -> None:
    page = (DOCS / "budget.md").read_text()
    model: Signal = parse(Signal, tomllib.loads(page.split("```toml\n")[1].split("```")[0]), "budget.md")
    assert model.budget is not None
    assert model.range is not None
    loss_db = free_space_db(model.range, model.budget.frequency)
    ebn0_db = model.budget.ebn0_db(model.range)
    (state,) = model.states(10**9, 1)
    assert state.ber is not None
    ber = f"{state.ber:.1e}".replace("e-0", "e-")
    said = " ".join(page.split())
    assert f"The free-space loss is {loss_db:.1f} dB and Eb/N0 is {ebn0_db:.1f} dB," in said
    assert f"a bit error rate of {ber}." in said
