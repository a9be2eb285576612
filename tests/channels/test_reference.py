"""The list of channel models: what it says about a key is what the model accepts."""

from __future__ import annotations

import tomllib
from typing import get_args

import pytest

from docs.scripts.make_channel_parameters import PAGE, page
from hindflight.channels.models.reference import find_model, model_references
from hindflight.channels.models.synth import MODEL_CLASSES, MODELS
from hindflight.toolkit.errors import ChannelError


def test_the_page_is_written_from_the_code() -> None:
    assert PAGE.read_text() == page(), "stale: python -m docs.scripts.make_channel_parameters"


def test_every_model_and_each_of_its_keys_is_listed() -> None:
    assert [model.name for model in model_references()] == list(MODELS)
    for model, kind in zip(model_references(), MODEL_CLASSES, strict=True):
        own = {key.name for key in model.keys if "." not in key.name}
        assert own == {field.alias or name for name, field in kind.model_fields.items()} - {"model"}


@pytest.mark.parametrize("name", ["slots", "uav"])
def test_defaults_are_written_as_a_file_has_them(name: str) -> None:
    """A model with all listed defaults equals the model that leaves them out."""
    (kind,) = (kind for kind in MODEL_CLASSES if name in get_args(kind.model_fields["model"].annotation))
    given = [f"{key.name} = {key.default}" for key in find_model(name).keys if key.default != "none"]
    table = tomllib.loads(f'model = "{name}"\n' + "\n".join(given))
    assert kind.model_validate(table) == kind.model_validate({"model": name})


def test_keys_of_tables_have_their_path_and_their_bounds() -> None:
    street = {key.name: key for key in find_model("street").keys}
    assert street["satellite.geo"].allowed == "a number, at least -180, at most 360"
    assert street["heights"].default == '{ law = "log_normal", median = "20.6 m", sigma = 0.44 }'
    assert street["width"].allowed == "a table with the keys of heights"
    assert street["satellite"].default is None


def test_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(ChannelError, match="street"):
        find_model("stret")
