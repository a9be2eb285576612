"""What the profiles set: the page, the command and the engine agree."""

from __future__ import annotations

import json

import pytest

from docs.scripts.make_profiles_page import PAGE, page
from hindflight.cli.app import main
from hindflight.replay.scenario.flows import STACK, Flow, LegStack, Stack
from hindflight.replay.scenario.profiles import MEANINGS, PROFILES, parameters_of, settings
from hindflight.replay.scenario.proxies import StackLayers


def test_the_page_says_what_the_code_says() -> None:
    assert PAGE.read_text() == page(), "docs/profiles.md is stale: python -m docs.scripts.make_profiles_page"


def test_every_key_is_listed_in_its_place() -> None:
    assert [setting.key for setting in settings()] == list(STACK)
    assert set(MEANINGS) == set(STACK)
    assert all(setting.meaning and setting.source and tuple(setting.values) == PROFILES for setting in settings())


def test_values_read_back_as_the_engine_has_them() -> None:
    found = {setting.key: setting for setting in settings()}
    assert dict(found["min_rto"].values) == {"rfc": "1 s", "linux": "200 ms", "ns2": "200 ms", "windows": "300 ms"}
    assert found["recovery"].values["linux"] == "rack_prr"
    assert found["mss"].allowed == "1 B to 65 kB"
    for key, name in STACK.items():
        for profile in PROFILES:
            text, value = found[key].values[profile], parameters_of(profile)[name]
            if text == "none":
                assert value is None
            elif isinstance(value, str):
                assert text == value
            else:
                written = json.loads(text) if text in {"true", "false"} or text.isdigit() else text
                assert Stack.model_validate({key: written}).overrides() == {key: value}


def test_windows_is_rfc_with_what_microsoft_publishes() -> None:
    layers = StackLayers(Flow(profile="windows"))
    engine = layers.engine()
    assert (layers.engine_profile, layers.contradiction()) == ("rfc", None)
    assert (engine["min_rto_ns"], engine["recovery"], engine["timestamps"]) == (300_000_000, "rack_prr", False)
    assert (parameters_of("windows")["smss_bytes"], parameters_of("windows")["header_bytes"]) == (1460, 40)
    # Keys of the file override those of the profile, and what follows from them gives way.
    without = StackLayers(Flow(profile="windows"), LegStack.model_validate({"sack": False, "min_rto": "1 s"}))
    engine = without.engine()
    assert (without.contradiction(), "recovery" in engine, engine["min_rto_ns"]) == (None, False, 1_000_000_000)
    assert "tail_loss_probe" not in engine
    fixed = StackLayers(Flow.model_validate({"profile": "windows", "receive_buffer": "1 MiB"})).engine()
    assert "receive_buffer_max_bytes" not in fixed
    # A profile of a later layer leaves nothing of it.
    assert StackLayers(Flow(profile="windows"), LegStack(profile="linux")).engine() == {}


def test_the_command_lists_all_or_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "profiles"]) == 0
    shown = capsys.readouterr().out
    assert all(f" {key} " in shown for key in STACK)
    assert main(["scenario", "profiles", "pacing"]) == 0
    assert "twice the window per round trip in slow start" in " ".join(capsys.readouterr().out.split())
    assert main(["scenario", "profiles", "quickack_segments", "--json"]) == 0
    (setting,) = json.loads(capsys.readouterr().out)["settings"]
    assert setting["values"] == {"rfc": "0", "linux": "16", "ns2": "0", "windows": "0"}
    assert main(["scenario", "profiles", "min_rot"]) == 2
    assert "did you mean 'min_rto'?" in capsys.readouterr().err
