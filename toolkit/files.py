"""Files: written whole or not at all, replaced only where that loses nothing, and the machine's errors in one line.

A command may replace a file that hindflight wrote and nobody has changed since: one with a valid seal
(toolkit/seal.py), or one that has exactly the content to be written. Anything else stays until the user says
`--force`, and a command never writes what it reads. Depends on no table and no format.
"""

from __future__ import annotations

import errno
import filecmp
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hindflight.toolkit.errors import HindflightError, MachineError
from hindflight.toolkit.seal import is_unchanged

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
    """Turn an OSError raised inside into a MachineError or, where the user is at fault, a HindflightError.

    `doing` is the operation, as in "writing report.html".
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


def check_outputs(
    outputs: Iterable[Path | None], inputs: Iterable[Path], *, force: bool, may_be_equal: bool = False
) -> None:
    """Check, before any work is done, that a command may write `outputs` (None: not asked for).

    HindflightError: an output is one of `inputs`, by whatever name, or is given twice; or it is a file that
    hindflight did not write or somebody has changed since, and `force` is not set. With `may_be_equal`, the latter is
    left to `whole_file`, which knows the content.
    """
    asked = [path for path in outputs if path is not None]
    read = list(inputs)
    for at, path in enumerate(asked):
        for other in read:
            if _is_same(path, other):
                raise HindflightError(
                    f"{path} is an input ({other}); an input is never replaced", "write to another file"
                )
        if any(_is_same(path, other) for other in asked[:at]):
            raise HindflightError(f"{path} is given for two outputs", "give each its own file")
        _check_replaceable(path, None, force or may_be_equal)


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file: through links, and in another case where the file system ignores case."""
    try:
        return one.samefile(other)
    except OSError:  # One of them does not exist yet.
        return os.path.realpath(one) == os.path.realpath(other)


def _check_replaceable(path: Path, content: bytes | None, force: bool) -> None:
    """HindflightError if `path` may not be replaced, by `content` where that is known."""
    with plain_os_errors(f"writing {path}"):
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            if force or not path.is_symlink():
                return
            raise _not_ours(path) from None
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise HindflightError(f"{path} is not a regular file, so it cannot be replaced", "write to another file")
        if force or stat.S_ISDIR(mode) or is_unchanged(path) or (content is not None and _has_content(path, content)):
            return
    raise _not_ours(path)


def _has_content(path: Path, content: bytes) -> bool:
    return path.stat().st_size == len(content) and path.read_bytes() == content


def _not_ours(path: Path) -> HindflightError:
    return HindflightError(
        f"{path} exists, and hindflight did not write it or it was changed since",
        "write to another file, or replace it with --force",
    )


def temporary_name(path: Path) -> Path:
    """Return where to write what will be `path` when it is whole. OSError where a folder has that name."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return path.with_name(f".hindflight-{os.getpid()}.tmp")


@contextmanager
def whole_file(path: Path, *, force: bool = True) -> Iterator[Path]:
    """Give the name of a temporary file that becomes `path` at the end of the block; it goes if the block fails.

    Without `force` HindflightError where `path` may not be replaced: see the head of this file.
    """
    with plain_os_errors(f"writing {path}"):
        temporary = temporary_name(path)
        try:
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            check_replaceable_by(temporary, path, force=force)
            temporary.replace(path)
        except BaseException:
            with suppress(FileNotFoundError):
                temporary.unlink()
            raise
        sync_folder(path.parent)


def check_replaceable_by(new: Path, path: Path, *, force: bool) -> None:
    """HindflightError where `path` may not be replaced by the content of the file `new`."""
    if not (path.is_file() and filecmp.cmp(new, path, shallow=False)):
        _check_replaceable(path, None, force)


def write_whole(path: Path, content: str | bytes, *, force: bool = True) -> None:
    """Write `content` so that `path` has either its old content or all of `content`, also after a crash.

    Without `force` HindflightError where `path` may not be replaced: see the head of this file.
    """
    data = content.encode() if isinstance(content, str) else content
    _check_replaceable(path, data, force)
    with whole_file(path) as temporary:
        temporary.write_bytes(data)


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def note_content(path: Path, seen: dict[str, Path]) -> Path | None:
    """Add a file to those `seen`, by the digest of their contents; return the one that has its content already."""
    digest = sha256_of(path)
    twin = seen.get(digest)
    seen.setdefault(digest, path)
    return twin


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of the file's octets, in hexadecimal."""
    with plain_os_errors(f"reading {path}"), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
