"""What the profiles set: the page, the command and the engine agree."""

from __future__ import annotations

import json

import pytest

from docs.scripts.make_profiles_page import PAGE, page
from hindflight.cli.app import main
from hindflight.replay.catalogue import profile_parameters
from hindflight.replay.scenario.flows import STACK, Stack
from hindflight.replay.scenario.profiles import MEANINGS, PROFILES, settings


def test_the_page_says_what_the_code_says() -> None:
    assert PAGE.read_text() == page(), "docs/profiles.md is stale: python -m docs.scripts.make_profiles_page"


def test_every_key_is_listed_in_its_place() -> None:
    assert [setting.key for setting in settings()] == list(STACK)
    assert set(MEANINGS) == set(STACK)
    assert all(setting.meaning and setting.source and tuple(setting.values) == PROFILES for setting in settings())


def test_values_read_back_as_the_engine_has_them() -> None:
    found = {setting.key: setting for setting in settings()}
    assert dict(found["min_rto"].values) == {"rfc": "1 s", "linux": "200 ms", "ns2": "200 ms"}
    assert found["recovery"].values["linux"] == "rack_prr"
    assert found["mss"].allowed == "1 B to 65 kB"
    for key, name in STACK.items():
        for profile in PROFILES:
            text, value = found[key].values[profile], profile_parameters(profile)[name]
            if text == "none":
                assert value is None
            elif isinstance(value, str):
                assert text == value
            else:
                written = json.loads(text) if text in {"true", "false"} or text.isdigit() else text
                assert Stack.model_validate({key: written}).overrides() == {key: value}


def test_the_command_lists_all_or_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "profiles"]) == 0
    shown = capsys.readouterr().out
    assert all(f" {key} " in shown for key in STACK)
    assert main(["scenario", "profiles", "pacing"]) == 0
    assert "twice the window per round trip in slow start" in " ".join(capsys.readouterr().out.split())
    assert main(["scenario", "profiles", "quickack_segments", "--json"]) == 0
    (setting,) = json.loads(capsys.readouterr().out)["settings"]
    assert setting["values"] == {"rfc": "0", "linux": "16", "ns2": "0"}
    assert main(["scenario", "profiles", "min_rot"]) == 2
    assert "did you mean 'min_rto'?" in capsys.readouterr().err
