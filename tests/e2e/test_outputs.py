"""What a command writes never takes the place of the user's work: edited files and inputs stay.

The commands run in this process: there are many of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hindflight.cli.app import main
from tests.e2e.conftest import FLOW

CAPTURE = FLOW / "snd.pcap.xz"
STREET = ("street", "-p", "satellite={azimuth=60.0, elevation=40.0}", "-p", "speed=20 m/s", "--duration", "2 s")
SHORT = ("--seeds", "1", "--variants", "newreno", "--proxy", "none")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    returncode: int
    stderr: str


Command = Callable[..., Ended]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a capture, a workspace of it, and a channel trace."""
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "a.pcap.xz").write_bytes(CAPTURE.read_bytes())
    assert main(["ingest", str(folder / "a.pcap.xz"), "-w", str(folder / "ws")]) == 0
    assert main(["channel", "extract", str(folder / "ws"), "-o", str(folder / "a.parquet")]) == 0
    street = ["channel", "synth", *STREET, "-o", str(folder / "s.parquet"), "--skyline", str(folder / "s.csv")]
    assert main(street) == 0
    (folder / "model.toml").write_text(
        'model = "street"\nsatellite = { azimuth = 60.0, elevation = 40.0 }\nspeed = "20 m/s"\nskyline = "s.csv"\n'
    )
    return folder


@pytest.fixture
def made(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the prepared folder as the current one; its workspace knows the capture in it."""
    folder = tmp_path / "work"
    shutil.copytree(prepared, folder)
    manifest = folder / "ws" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(str(prepared), str(folder)))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def hindflight(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command here and return how it ended."""

    def run(*arguments: str) -> Ended:
        capsys.readouterr()
        return Ended(main(list(arguments)), capsys.readouterr().err)

    return run


COMMANDS = (
    (("channel", "extract", "ws", "-o"), "x.parquet", "x.parquet"),
    (("channel", "synth", "bernoulli", "-p", "per=0.1", "--packets", "100", "-o"), "x.parquet", "x.parquet"),
    (("channel", "synth", *STREET, "-o", "y.parquet", "--skyline"), "x.csv", "x.csv"),
    (("channel", "convert", "a.parquet"), "x.parquet", "x.parquet"),
    (("channel", "convert", "a.parquet"), "x.csv", "x.csv"),
    (("channel", "convert", "a.parquet"), "x.sh", "x.sh"),
    (("channel", "convert", "a.parquet"), "x.tcl", "x.tcl"),
    (("channel", "fit", "a.parquet", "--model", "bernoulli", "--charts"), "pictures", "pictures/runs.png"),
    (("channel", "show", "a.parquet", "--charts"), "pictures", "pictures/states.png"),
    (("scenario", "init", "ws", "-o"), "x.toml", "x.toml"),
    (("scenario", "init", "ws", "-o"), "x.toml", "x.channel.parquet"),
    (("report", "ws", "-o"), "x.html", "x.html"),
    (
        ("report", "ws", "-o", "y.html", "--charts-format", "svg", "--charts"),
        "charts",
        "charts/01-flow-1-time-sequence-graph.svg",
    ),
)


@pytest.mark.parametrize(("command", "given", "written"), COMMANDS)
def test_our_own_file_is_replaced_and_the_users_is_not(
    hindflight: Command, made: Path, command: tuple[str, ...], given: str, written: str
) -> None:
    path = made / written
    for _ in range(2):
        ended = hindflight(*command, given)
        assert ended.returncode == 0, ended.stderr
        assert path.is_file(), list(made.rglob("*"))
    edited = path.read_bytes().replace(b"1", b"2", 1) + b"\n"
    path.write_bytes(edited)
    before = {each: each.read_bytes() for each in made.rglob("*") if each.is_file()}
    ended = hindflight(*command, given)
    assert ended.returncode == 2
    assert written in ended.stderr.splitlines()[0]
    assert "--force" in ended.stderr.splitlines()[1]
    after = {each: each.read_bytes() for each in made.rglob("*") if each.is_file()}
    assert after[path] == edited
    assert after.keys() == before.keys()
    assert hindflight(*command, given, "--force").returncode == 0
    assert path.read_bytes() != edited


@pytest.mark.parametrize(
    ("command", "target"),
    [
        (("channel", "extract", "a.pcap.xz", "-o"), "a.pcap.xz"),
        (("channel", "extract", "ws", "-o"), "a.pcap.xz"),
        (("channel", "extract", "ws", "-o"), "ws/flows-000002.parquet"),
        (("channel", "convert", "a.parquet"), "a.parquet"),
        (("channel", "synth", "model.toml", "-o"), "model.toml"),
        (("channel", "synth", "model.toml", "-o", "y.parquet", "--skyline"), "s.csv"),
        (("scenario", "init", "a.pcap.xz", "-o"), "a.pcap.xz"),
        (("report", "ws", "-o"), "ws/manifest.json"),
        (("report", "ws", "-o", "y.html", "--csv"), "a.pcap.xz"),
    ],
)
@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
def test_an_input_is_never_replaced(
    hindflight: Command, made: Path, command: tuple[str, ...], target: str, link: str
) -> None:
    before = (made / target).read_bytes()
    name = target
    if link != "same":
        name = f"link{Path(target).suffix}"
        (made / name).symlink_to(made / target) if link == "symbolic" else (made / name).hardlink_to(made / target)
    if (command[:2] == ("channel", "synth") and name.endswith((".toml", ".xz"))) or name.endswith(".pcap.xz"):
        pass
    ended = hindflight(*command, name, "--force")
    assert ended.returncode == 2
    assert "input" in ended.stderr.splitlines()[0] or "this command writes Parquet" in ended.stderr.splitlines()[0]
    assert (made / target).read_bytes() == before
    assert (made / name).read_bytes() == before


def test_captures_of_a_replay_need_an_empty_place(hindflight: Command, made: Path) -> None:
    assert hindflight("scenario", "init", "ws", "-o", "s.toml", *SHORT).returncode == 0
    export = ("export", "s.toml", "--format", "pcapng", "-o", "captures")
    assert hindflight(*export).returncode == 0
    capture = next((made / "captures").glob("*.pcapng"))
    capture.write_bytes(b"mine")
    ended = hindflight(*export)
    assert ended.returncode == 2
    assert "captures/" in ended.stderr.splitlines()[0]
    assert capture.read_bytes() == b"mine"
    assert hindflight(*export, "--force").returncode == 0
    assert capture.read_bytes() != b"mine"


def test_an_edited_scenario_survives_what_if(hindflight: Command, made: Path) -> None:
    command = ("whatif", "a.pcap.xz", "-o", "out", *SHORT)
    for _ in range(2):
        ended = hindflight(*command)
        assert ended.returncode == 0, ended.stderr
    scenario, report = made / "out" / "scenario.toml", made / "out" / "report.html"
    edited = scenario.read_text().replace("seeds = 1", "seeds = 2")
    scenario.write_text(edited)
    before = report.read_bytes()
    ended = hindflight(*command)
    assert ended.returncode == 2
    assert "out/scenario.toml exists" in ended.stderr.splitlines()[0]
    assert scenario.read_text() == edited
    assert report.read_bytes() == before
    assert hindflight(*command, "--force").returncode == 0
    assert "seeds = 1" in scenario.read_text()


def test_what_if_never_writes_over_its_capture(hindflight: Command, made: Path) -> None:
    (made / "out").mkdir()
    shutil.copy(CAPTURE, made / "out" / "report.html")
    ended = hindflight("whatif", "out/report.html", "-o", "out", *SHORT, "--force")
    assert ended.returncode == 2
    assert "is an input" in ended.stderr.splitlines()[0]
    assert (made / "out" / "report.html").read_bytes() == CAPTURE.read_bytes()
