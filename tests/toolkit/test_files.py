"""Files are whole or not there, and the machine's refusals are told in words."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hindflight.toolkit.errors import HindflightError, MachineError
from hindflight.toolkit.files import os_error, sha256_of, write_whole


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_whole(path, "first")
    write_whole(path, b"second")
    assert path.read_text() == "second"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_content_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    write_whole(path, "first")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MachineError, match=r"the disk is full while writing .*report.html"):
        write_whole(path, "second")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (errno.ENOSPC, MachineError, "the disk is full while saving"),
        (errno.EACCES, MachineError, "no permission while saving"),
        (errno.EROFS, MachineError, "the file system is read-only while saving"),
        (errno.ENOENT, HindflightError, "no such file or folder while saving"),
        (errno.EISDIR, HindflightError, "it is a folder while saving"),
    ],
)
def test_whose_fault_it_is(number: int, kind: type[HindflightError], message: str) -> None:
    error = os_error(OSError(number, "x"), "saving")
    assert type(error) is kind
    assert str(error) == message


def test_sha256(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256_of(tmp_path / "x").startswith("ba7816bf")
    with pytest.raises(HindflightError, match="no such file"):
        sha256_of(tmp_path / "nix")


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    for folder in (tmp_path, Path("."), Path("/")):
        with pytest.raises(HindflightError, match="it is a folder while writing"):
            write_whole(folder, "x")
