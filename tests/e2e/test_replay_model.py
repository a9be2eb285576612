"""`hindflight replay` and `report` on a scenario without a capture: none is spoken of, and nothing is kept back."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.conftest import Command

SCENARIO = """
name = "x"
duration = "20 s"
path = ["a", "m", "b"]
[[links]]
name = "l1"
rate = "10 Mbit/s"
delay = "20 ms"
[[links]]
name = "l2"
rate = "2 Mbit/s"
delay = "100 ms"
queue = { kind = "pie", ecn = false }
changes = [{ at = "8 s", outage = true }]
[flow]
profile = "linux"
user_timeout = "5 s"
[[flows]]
name = "other"
variant = "reno"
[compare]
variants = ["cubic", "newreno"]
seeds = 1
"""


def test_nothing_captured_is_spoken_of_and_resets_are_told(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO)
    ended = hindflight("replay", "s.toml", "-w", "ws")
    assert ended.returncode == 0, ended.stderr
    shown = " ".join(ended.stdout.split())
    assert "captured" not in shown
    assert "mean: one run for each seed, which draws the channel from its model" in shown
    assert "cubic: other (reno)" in shown
    assert "not told: reset" in shown
    assert "newreno: the connection was reset in 1 of 1 run, after" in shown
    assert hindflight("report", "ws", "-o", "r.html").returncode == 0
    page = (tmp_path / "r.html").read_text()
    for said in ("Replayed without a capture", "Data lost: queue management", "Reset after", "undecided"):
        assert said in page, said
    for untrue in ("No findings were computed", "resampled channel", "captured channel", "over 1 seeds"):
        assert untrue not in page, untrue
