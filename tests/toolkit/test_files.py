"""Files are whole or not there, and errors of the machine are reported as text."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hindflight.toolkit.errors import HindflightError, MachineError
from hindflight.toolkit.files import check_outputs, os_error, sha256_of, write_whole
from hindflight.toolkit.seal import SEAL_NOTE, sealed


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


def sealed_text(text: str) -> bytes:
    return sealed(f"{text}# {SEAL_NOTE}\n".encode())


def test_without_force_only_our_own_unchanged_files_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    write_whole(path, sealed_text("a = 1\n"), force=False)
    write_whole(path, sealed_text("a = 2\n"), force=False)
    assert b"a = 2" in path.read_bytes()
    edited = path.read_bytes().replace(b"2", b"3", 1)
    path.write_bytes(edited)
    with pytest.raises(HindflightError, match="changed since") as caught:
        write_whole(path, sealed_text("a = 4\n"), force=False)
    assert "--force" in str(caught.value.hint)
    assert path.read_bytes() == edited
    write_whole(path, edited, force=False)  # Nothing is lost.
    write_whole(path, "a = 5\n", force=True)
    assert path.read_text() == "a = 5\n"


def test_a_link_to_nothing_is_the_users(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    with pytest.raises(HindflightError, match="changed since"):
        write_whole(link, "x", force=False)
    assert link.is_symlink()


@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_regular_file_is_never_replaced(tmp_path: Path, force: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(HindflightError, match="not a regular file"):
            write_whole(path, "x", force=force)
        assert not path.is_file()


@pytest.mark.parametrize("force", [False, True])
def test_an_input_is_never_an_output(tmp_path: Path, force: bool) -> None:
    capture = tmp_path / "a.pcap"
    capture.write_bytes(b"capture")
    (tmp_path / "soft").symlink_to(capture)
    (tmp_path / "hard").hardlink_to(capture)
    (tmp_path / "folder").symlink_to(tmp_path)
    for name in ("a.pcap", "soft", "hard", "folder/a.pcap", "folder/folder/a.pcap"):
        with pytest.raises(HindflightError, match="is an input"):
            check_outputs([None, tmp_path / name], [tmp_path / "b.pcap", capture], force=force)
    check_outputs([tmp_path / "new"], [capture, tmp_path / "gone"], force=force)


def test_a_name_in_another_case_is_the_same_file_where_the_file_system_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = tmp_path / "a.pcap"
    capture.write_bytes(b"capture")
    as_it_is = Path.stat
    monkeypatch.setattr(Path, "stat", lambda path, **kw: as_it_is(path.with_name(path.name.lower()), **kw))
    with pytest.raises(HindflightError, match="is an input"):
        check_outputs([tmp_path / "A.PCAP"], [capture], force=True)


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("x")
    with pytest.raises(HindflightError, match="two outputs"):
        check_outputs([tmp_path / "x", tmp_path / "link"], [], force=True)
