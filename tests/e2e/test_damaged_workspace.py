"""A damaged workspace is the user's error in one line, whatever octet of it has changed.

The commands run in this process: a few thousand of them are made by `HINDFLIGHT_MUTATIONS=3000 pytest` on this file.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hindflight.cli.app import main
from hindflight.toolkit.workspace import Workspace
from tests.e2e.conftest import FLOW

COMMANDS = (
    ("flows", "ws"),
    ("series", "ws", "--flow", "1"),
    ("query", "ws", "SELECT * FROM segments, flows, instruments, variables LIMIT 3"),
    ("query", "ws", "SELECT max(COLUMNS(*)) FROM segments"),
    ("score", "ws"),
    ("info", "ws"),
    ("channel", "extract", "ws"),
    ("report", "ws", "-o", "report.html", "--force"),
)
MUTATIONS = int(os.environ.get("HINDFLIGHT_MUTATIONS", "60"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    capture = folder / "a.pcap.xz"
    capture.write_bytes((FLOW / "snd.pcap.xz").read_bytes())
    inputs = [str(capture), str(FLOW / "tcpinfo.csv.xz")]
    assert main(["ingest", *inputs, "-w", str(folder / "ws")]) == 0
    return folder / "ws"


@pytest.fixture
def workspace(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(sound, tmp_path / "ws")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ws"


def ended(command: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capfd.readouterr()
    code = main(list(command))
    return code, capfd.readouterr().err


def test_the_sound_workspace_serves_every_command(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    codes = {command[0]: ended(command, capfd)[0] for command in COMMANDS}
    assert set(codes.values()) == {0}
    assert Workspace.open(workspace).rows("variables") > 0


@pytest.mark.parametrize("seed", range(4))
def test_no_change_of_any_file_makes_an_error_of_ours(
    workspace: Path, capfd: pytest.CaptureFixture[str], seed: int
) -> None:
    random_ = random.Random(seed)
    files = sorted(path for path in workspace.iterdir() if path.suffix in (".json", ".parquet"))
    tables = {name: Workspace.open(workspace).table(name) for name in Workspace.open(workspace).manifest.tables}
    for number in range(seed, MUTATIONS, 4):
        path = random_.choice([files[-1], workspace / "manifest.json", *files])
        content = path.read_bytes()
        path.write_bytes(changed(content, random_))
        for command in (COMMANDS[number % 7], COMMANDS[7] if number % 20 == 0 else COMMANDS[0]):
            code, said = ended(command, capfd)
            assert code in (0, 2), (path.name, command, said)
            assert "Traceback" not in said
            assert code == 0 or len([line for line in said.splitlines() if not line.startswith("  hint: ")]) == 1, said
            if path.suffix == ".parquet" and code == 0 and reads(command, path.name):
                name = path.name.partition("-")[0]  # a header of a page says more than its reader needs
                assert Workspace.open(workspace).table(name).equals(tables[name]), (path.name, command)
        path.write_bytes(content)


def reads(command: tuple[str, ...], part: str) -> bool:
    """Whether a command reads all of a part: then no changed value goes unnoticed."""
    return command[0] == "report" or (command[0] == "flows" and part.startswith("flows-"))


def changed(content: bytes, random_: random.Random) -> bytes:
    """One to three flipped bits, an octet of chance, a part cut out, or the end cut off."""
    octets = bytearray(content)
    at = random_.randrange(len(octets))
    kind = random_.randrange(5)
    if kind <= 1:
        for _ in range(random_.randint(1, 3)):
            octets[random_.randrange(len(octets))] ^= 1 << random_.randrange(8)
    elif kind == 2:
        octets[at] = (octets[at] + random_.randint(1, 255)) % 256
    elif kind == 3:
        del octets[at : at + random_.randint(1, 40)]
    else:
        del octets[at:]
    return bytes(octets) if bytes(octets) != content else content[:-1]


def test_a_column_that_is_not_there_is_not_read_as_nulls(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A workspace of format version 1 has no digests; a file that lacks a column still does not pass for one."""
    manifest = json.loads((workspace / "manifest.json").read_text())
    part = manifest["tables"]["flows"][0]
    path = workspace / part["file"]
    pq.write_table(pq.read_table(path).rename_columns({"start_ns": "start_nz"}), path)
    part["size_bytes"] = path.stat().st_size
    manifest["format_version"] = 1
    for parts in manifest["tables"].values():
        for each in parts:
            del each["footer_sha256"]
    (workspace / "manifest.json").write_text(json.dumps(manifest))
    for command in (COMMANDS[0], ("query", "ws", "SELECT start_ns FROM flows")):
        code, said = ended(command, capfd)
        assert code == 2
        assert "column start_ns is missing" in said


def test_nulls_where_none_may_be_are_the_users_error(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((workspace / "manifest.json").read_text())
    part = manifest["tables"]["flows"][0]
    path = workspace / part["file"]
    table = pq.read_table(path)
    nulls = pa.nulls(table.num_rows, table.schema.field("start_ns").type)
    pq.write_table(table.set_column(table.schema.get_field_index("start_ns"), "start_ns", nulls), path)
    part["size_bytes"], part["footer_sha256"] = path.stat().st_size, ""
    (workspace / "manifest.json").write_text(json.dumps(manifest))
    code, said = ended(COMMANDS[0], capfd)
    assert code == 2
    assert "table flows of workspace ws cannot be read: flows.start_ns has 1 nulls" in said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"rows": 1,', '"rows": "1",'),
        ('"rows": 1,', '"rows": -1,'),
        ('"rows": 1,', '"rows": NaN,'),
        ('"next_part": ', '"next_part": [], "x": '),
        ('"kind": "capture"', '"kind": "\\\\ud800"'),
        ('"kind": "capture"', '"kind": 7'),
        ('"inputs": [', '"inputs": [[],'),
        ('"versions": {', '"versions": {"x": 1, '),
        ('"tables": {', '"tables": {"flows ": [], '),
        ("{", "[" * 100_000),
    ],
)
def test_a_manifest_that_says_something_else(
    workspace: Path, capfd: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    path = workspace / "manifest.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1).replace("\\\\", "\\"))
    for command in COMMANDS[:5]:
        code, said = ended(command, capfd)
        assert code == 2, command
        assert "manifest.json is damaged" in said
