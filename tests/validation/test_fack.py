"""FACK's two options compared with ns-2, which has them as `rampdown_` and `ss-div4_`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from validation import tcp_linux
from validation.simulator import simulator
from validation.tcp_linux import OPEN, Case, compare_with_tcp_linux

NS = simulator()
OPTIONS = {"rampdown": "rampdown_", "overdamping": "ss-div4_"}
STARTING = replace(OPEN, losses=(200, 6000), duration_s=10.0)
"""The first loss meets slow start, where overdamping matters."""


@pytest.mark.peer
@pytest.mark.skipif(NS is None, reason="needs ns (ns-2)")
@pytest.mark.parametrize("given", [("rampdown",), ("overdamping",), ("rampdown", "overdamping")])
def test_each_option_moves_the_window_as_in_ns2(given: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    ordered = "".join(f"Agent/TCP/Fack set {OPTIONS[name]} 1\n" for name in given)
    monkeypatch.setattr(tcp_linux, "SCRIPT", tcp_linux.SCRIPT.replace("set a [$ns node]", ordered + "set a [$ns node]"))
    case = Case("", "fack", STARTING, dict.fromkeys(given, True), agent="Fack")
    plain = replace(case, params={})
    (with_option, without) = compare_with_tcp_linux(NS or "", [case, plain], threads=1)
    assert with_option.check.verdict == "pass", with_option.check
    # Without the option the engine is elsewhere after the first loss, if the option moves cwnd at all.
    if "overdamping" in given:
        assert without.check.verdict == "fail", without.check
