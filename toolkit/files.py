"""Files that are whole or not there, and the machine's refusals in words. Ground floor: knows no table, no format."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hindflight.toolkit.errors import HindflightError, MachineError

_MACHINE = {
    errno.ENOSPC: ("the disk is full", "free some space, or choose a folder on another disk"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, or choose a folder on another disk"),
    errno.EACCES: ("no permission", "check the permissions of the file and its folder"),
    errno.EPERM: ("no permission", "check the permissions of the file and its folder"),
    errno.EROFS: ("the file system is read-only", "choose a folder that can be written"),
    errno.EIO: ("the disk reports an input/output error", "check the disk"),
    errno.EMFILE: ("too many open files", "raise the limit: ulimit -n"),
    errno.ENOMEM: ("out of memory", None),
}


@contextmanager
def plain_os_errors(doing: str) -> Iterator[None]:
    """Turn an OSError inside into one line: MachineError for the machine's fault, HindflightError for the user's.

    `doing` says what was under way, as in "writing report.html".
    """
    try:
        yield
    except OSError as error:
        raise os_error(error, doing) from error


def os_error(error: OSError, doing: str) -> HindflightError:
    """Return the error to show for `error`: see `plain_os_errors`."""
    if error.errno in _MACHINE:
        reason, hint = _MACHINE[error.errno]
        return MachineError(f"{reason} while {doing}", hint)
    reason = {
        errno.ENOENT: "no such file or folder",
        errno.ENOTDIR: "part of the path is not a folder",
        errno.EISDIR: "it is a folder",
        errno.EEXIST: "it exists already",
    }.get(error.errno or 0, error.strerror or str(error))
    return HindflightError(f"{reason} while {doing}")


def beside(path: Path) -> Path:
    """Return where to write what will be `path` when it is whole. OSError where a folder has that name."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content` so that `path` holds either what it held before or all of `content`, also after a crash."""
    data = content.encode() if isinstance(content, str) else content
    with plain_os_errors(f"writing {path}"):
        temporary = beside(path)
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(FileNotFoundError):
                temporary.unlink()
            raise
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of the file's octets, in hexadecimal."""
    with plain_os_errors(f"reading {path}"), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
