"""Parameters out of range give one line with the key and the allowed values, not an internal error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hindflight.channels.models.parameters import LONGEST_NS, parse, read_toml
from hindflight.channels.models.synth import ANY_MODEL, MAX_PACKETS, Extent, synthesise_trace
from hindflight.toolkit.errors import ChannelError

RAIN = {"median_db": 2.0, "sigma": 1.2}
BUDGET = {"eirp_dbw": 20.0, "g_over_t_dbk": 5.0, "frequency": "12 GHz", "bit_rate": "5 Mbit/s"}
STREET = {"model": "street", "satellite": {"azimuth": 60.0, "elevation": 40.0}}
SIGNAL = {"model": "signal", "ebn0_db": 9.0}
LMS = {"model": "lms", "margin_db": 5.0}
STATE = {"mean_length": "5 m", "multipath_db": -10.0}


def refused(data: dict[str, Any], folder: Path = Path()) -> str:
    with pytest.raises(ChannelError) as caught:
        synthesise_trace(parse(ANY_MODEL, data, "m", folder), seed=1, extent=Extent(span_ns=10**9))
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({**SIGNAL, "rain": {**RAIN, "sigma": 1000.0}}, "sigma: 1000.0 is out of range; at most 10"),
        ({**SIGNAL, "rain": {**RAIN, "median_db": 1e308}}, "median_db: 1e+308 is out of range"),
        ({**SIGNAL, "rain": {**RAIN, "median_db": 0.0}}, "median_db: 0.0 is out of range; more"),
        ({**SIGNAL, "rain": {**RAIN, "beta": 1e308}}, "beta: 1e+308 is out of range; at most 1000"),
        ({"model": "signal", "ebn0_db": 1e308}, "ebn0_db: 1e+308 is out of range; at most 1000"),
        ({**SIGNAL, "level_db": 1e-308}, "level_db: 1e-308 is out of range; at least 0.01"),
        ({**SIGNAL, "coding_gain_db": 1e4}, "coding_gain_db: 10000.0 is out of range"),
        ({"model": "signal", "cn0_dbhz": 1e308, "bit_rate": "1 Mbit/s"}, "cn0_dbhz: 1e+308 is out of range"),
        (
            {"model": "signal", "range": "1 km", "budget": {**BUDGET, "eirp_dbw": 1e308}},
            "eirp_dbw: 1e+308 is out of range",
        ),
        ({**LMS, "states": [{**STATE, "mean_length": "1e-300 m"}]}, "states[0].mean_length: 1e-300 m"),
        ({**LMS, "states": [{**STATE, "mean_length": "1e9 m"}]}, "take 5e+08 s; allowed: 1 ns to 30"),
        ({**LMS, "level_db": 0.001, "states": [STATE]}, "level_db: 0.001 is out of range"),
        (
            {**LMS, "states": [STATE] * 2, "jumps": [[0.0, 1.0], [0.0, 1.0]]},
            "jumps[1] leads to none of the states before it",
        ),
        ({"model": {}}, 'm: model is the name of one, as in model = "street"'),
        ({"model": "slots", "overlap": "20 s"}, "overlap is longer than the slot: three links at once"),
        (
            {
                "model": "handover",
                "steps": [{"at": "0 s"}, {"at": "1 s", "overlap": "5 s"}, {"at": "3 s", "overlap": "1 s"}],
            },
            "steps[2].overlap begins within that of the previous step: three links at once",
        ),
        ({**STREET, "length": "1e7 m"}, "length: '1e7 m' is out of range; at most 1000 km"),
        ({**STREET, "step": "1e30 s"}, "step: '1e30 s' is out of range; at most 720 h"),
        ({"model": "uav", "slot": "721 h"}, "slot: '721 h' is out of range; at most 720 h"),
        ({**STREET, "diffraction": {"frequency": "1 GHz", "margin_db": 1e308}}, "margin_db: 1e+308 is out of range"),
        (
            {**STREET, "diffraction": {"frequency": "1 GHz", "margin_db": 5.0, "step_db": 1e-308}},
            "step_db: 1e-308 is out",
        ),
        (
            {"model": "track", "near": {"latitude": 52.0, "longitude": 13.0}, "far": {"geo": 13.0}, "level_db": 1e-308},
            "level_db: 1e-308 is out of range; at least 0.01",
        ),
    ],
)
def test_parameters_out_of_range_give_one_line(data: dict[str, Any], message: str) -> None:
    assert message in refused(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t_s,ebn0_db\n0,1e308\n", "line 2: ebn0_db is beyond 1000 dB"),
        ("t_s,ebn0_db\n0,5\n1e300,5\n", "line 3: t_s is 1e+300; allowed: 0 to 2.592e+06"),
        ("t_s,ebn0_db\n-1,5\n", "line 2: t_s is -1; allowed: 0 to 2.592e+06"),
    ],
)
def test_series_out_of_range_give_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert message in refused({"model": "signal", "file": "a.csv"}, tmp_path)


def test_channel_longer_than_30_days_is_refused() -> None:
    assert Extent(span_ns=LONGEST_NS, packets=MAX_PACKETS).span_ns == 30 * 86_400 * 10**9
    with pytest.raises(ChannelError, match=r"a channel of 2.592e\+06 s is too long; at most 720 h"):
        Extent(span_ns=LONGEST_NS + 1)
    with pytest.raises(ChannelError, match="1000000001 packets are too many; at most 1000000000"):
        Extent(packets=MAX_PACKETS + 1)


def test_track_with_altitude_out_of_range_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t_s,latitude,longitude,altitude_m\n0,52,13,1e300\n")
    assert "an altitude is beyond 1e+09 m" in refused(
        {"model": "track", "near": {"file": "a.csv"}, "far": {"geo": 13.0}}, tmp_path
    )


def test_street_repeats_after_its_maximum_length() -> None:
    model = parse(
        ANY_MODEL, {**STREET, "speed": "1e5 m/s", "blocks": None, "facades": {"law": "constant", "value": "1 km"}}, "m"
    )
    assert model.skyline_for(10**13, 1).length_m == 1e6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p = " + "9" * 5000, "not a TOML file: Exceeds the limit (4300"),
        ("p = " + "[" * 5000, "its arrays are nested too deeply"),
        ("p = nope", "not a TOML file: Invalid value"),
    ],
)
def test_files_that_are_not_toml_give_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(ChannelError, match=re.escape(message)):
        read_toml(path)
