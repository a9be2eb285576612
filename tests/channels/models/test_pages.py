"""The pages of docs/channels name every key of the models with its default, and their examples are what they say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from hindflight.channels.models.budget import free_space_db
from hindflight.channels.models.parameters import parse
from hindflight.channels.models.signal import Budget, Signal

DOCS = Path(__file__).parents[3] / "docs" / "channels"

TABLES: dict[str, tuple[str, type[BaseModel]]] = {"budget": ("budget.md", Budget)}
"""By the name in the heading: the page, and the class whose keys the table below that heading lists."""


def rows(page: str, name: str) -> dict[str, str]:
    """Keys and defaults of the table below the heading "Parameters of `name`"."""
    text = (DOCS / page).read_text().split(f"## Parameters of `{name}`\n", 1)[1].split("\n## ", 1)[0]
    found: dict[str, str] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if line.startswith("| `"):
            for key in re.findall(r"`(\w+)`", cells[0]):
                found[key] = cells[1]
    return found


@pytest.mark.parametrize("name", TABLES)
def test_every_key_of_a_model_stands_in_its_page_with_its_default(name: str) -> None:
    page, kind = TABLES[name]
    fields = {field.alias or key: field for key, field in kind.model_fields.items() if key != "model"}
    said = rows(page, name)
    assert set(said) == set(fields)
    for key, field in fields.items():
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
