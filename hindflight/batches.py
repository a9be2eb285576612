"""What-if studies of many captures without questions: one folder each, only what is new, one summary.

Every capture runs in a process of its own, one after the other: its memory is free again afterwards, and neither a bad
file nor the end of a process stops the rest. A capture is known by its SHA-256, the version of Hindflight and the
choice of what to compare.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hindflight.toolkit.errors import AT_SENDER, HindflightError, MachineError
from hindflight.toolkit.files import check_outputs, plain_os_errors, sha256_of, write_whole
from hindflight.toolkit.seal import EMPTY_SEAL, is_unchanged, sealed
from hindflight.toolkit.text import name_to_text
from hindflight.toolkit.version import hindflight_version

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from hindflight.replay.scenario.from_capture import Choice

State = Literal["done", "unchanged", "failed"]
Said = Callable[[int, int, "Study"], None]

SUMMARY = "summary.json"
RECORD = "batch.json"
"""The file of a capture's folder that says what was done there; while it says `running`, the folder is half done."""

SUFFIXES = re.compile(r"\.(pcap|pcapng|cap|dmp|snoop)\d*(\.(gz|xz|zst|bz2|lz4))?$", re.IGNORECASE)
"""Names in a folder that are taken for captures even if their contents are not: that is a failure, not a pass."""

_WRITTEN = ("workspace", "scenario.toml", "scenario.channel.parquet", "report.html", AT_SENDER)
"""What a study writes into the folder of its capture."""

_TERMINATED = 128 + signal.SIGTERM
_END_S = 2.0
"""Time in seconds that the process of a study has to end after SIGTERM."""
_KEPT_NAME = 60
_SHOWN_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Study:
    """What became of one capture. Paths and names are text; a quantity that is not known is None.

    `state` is `done`, `unchanged` (done by an earlier batch) or `failed`; then `error`, `hint` and `exit_code` say why
    (2: the capture, 3: the machine, 1: Hindflight). `best` is the recommended variant and proxy, if one is better for
    sure, and `gain_percent` its gain in goodput over the captured variant with the ends of the 95 % interval.
    """

    capture: str
    sha256: str
    state: State
    folder: str = ""
    report: str = ""
    seconds: float = 0.0
    goodput_bps: float | None = None
    self_check: str | None = None
    best: str | None = None
    gain_percent: tuple[float, float, float] | None = None
    findings: tuple[str, ...] = ()
    error: str = ""
    hint: str = ""
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """All studies in order. `exit_code` is 0 if none failed, else the gravest of theirs: 1 before 3 before 2.

    `passed_over` are the files in the folders that are not captures.
    """

    studies: tuple[Study, ...]
    summary: str
    passed_over: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Return the exit code of the command."""
        codes = {study.exit_code for study in self.studies}
        return next((code for code in (1, 3, 2) if code in codes), 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `summary.json` holds."""
        count = {state: sum(s.state == state for s in self.studies) for state in ("done", "unchanged", "failed")}
        return {
            "hindflight": hindflight_version(),
            **count,
            "exit_code": self.exit_code,
            "captures": [asdict(study) for study in self.studies],
            "passed_over": list(self.passed_over),
        }


@dataclass(frozen=True, slots=True)
class Settings:
    """What to compare on every capture, the threads of a replay, and whether files may be replaced."""

    choice: Choice
    threads: int | None = None
    force: bool = False
    said: Said = field(default=lambda _number, _total, _study: None)


def run_batch(paths: Sequence[Path], out: Path, settings: Settings) -> Batch:
    """Study every capture of `paths` (files, or folders to search) into a folder each below `out`.

    ScenarioError: an unknown variant was chosen. HindflightError: there is no capture, a path does not exist, or
    `out`/summary.json may not be replaced. MachineError: `out` cannot be written. All else is the state of a study.
    """
    from hindflight.replay.scenario.from_capture import check_choice

    check_choice(settings.choice)
    captures, others = find_captures(paths, out)
    summary = out / SUMMARY
    check_outputs([summary], captures, force=settings.force)
    with plain_os_errors(f"writing {out}"):
        out.mkdir(parents=True, exist_ok=True)
    studies: list[Study] = []
    for number, capture in enumerate(captures, 1):
        studies.append(_study_or_known(capture, out, settings))
        settings.said(number, len(captures), studies[-1])
    batch = Batch(tuple(studies), name_to_text(summary), tuple(name_to_text(path) for path in others))
    document = {**batch.to_dict(), "seal": EMPTY_SEAL}
    write_whole(summary, sealed((json.dumps(document, indent=1) + "\n").encode()), force=settings.force)
    return batch


def find_captures(paths: Iterable[Path], out: Path) -> tuple[list[Path], list[Path]]:
    """Return the files of `paths` and the captures in its folders, each once, by name, and the other files in them;
    nothing below `out`.

    HindflightError: a path does not exist, or there is no capture.
    """
    found: dict[Path, Path] = {}
    others: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise HindflightError(f"{path} does not exist")
        for file in _files_below(path, out.resolve()) if path.is_dir() else [path]:
            kept = found if file == path or _is_capture(file) else others
            kept.setdefault(file.resolve(), file)
    if not found:
        raise HindflightError(
            "there is no capture in " + ", ".join(map(str, paths)), "name captures, or folders that contain some"
        )
    return list(found.values()), [file for real, file in others.items() if real not in found]


def _files_below(folder: Path, out: Path) -> list[Path]:
    files = []
    for where, folders, names in os.walk(folder):
        here = Path(where)
        folders[:] = sorted(
            name for name in folders if (here / name).resolve() != out and not _is_workspace(here / name)
        )
        files += [here / name for name in sorted(names)]
    return files


def _is_workspace(folder: Path) -> bool:
    return (folder / "manifest.json").exists() or (folder / RECORD).exists()


def _is_capture(path: Path) -> bool:
    """Return whether a file is studied: what cannot be read may be a capture, and its study says why it failed."""
    from hindflight.toolkit.capture import CaptureStream

    if not path.is_file():
        return False
    if SUFFIXES.search(path.name):
        return True
    try:
        CaptureStream(path)
    except MachineError:
        return True
    except HindflightError:
        return False
    return True


def _study_or_known(capture: Path, out: Path, settings: Settings) -> Study:
    """Return the study of one capture, from an earlier batch if nothing has changed."""
    from hindflight.toolkit.capture import CaptureStream

    shown = name_to_text(capture)
    try:
        sha256 = sha256_of(capture)
    except HindflightError as error:
        return Study(shown, "", "failed", error=error.message, hint=error.hint or "", exit_code=error.exit_code)
    folder = out / f"{_plain(capture.name)}-{sha256[:_SHOWN_DIGITS]}"
    key = {"sha256": sha256, "version": hindflight_version(), "choice": repr(settings.choice)}
    try:
        known = _known(folder, key)
        if known is not None:
            return known
        CaptureStream(capture)  # A file that is not a capture needs no separate process.
        _prepare(folder, key, force=settings.force)
    except HindflightError as error:
        return Study(shown, sha256, "failed", error=error.message, hint=error.hint or "", exit_code=error.exit_code)
    begin = time.monotonic()
    study = _in_its_own_process(Study(shown, sha256, "done", name_to_text(folder)), capture, folder, settings)
    study = replace(study, seconds=round(time.monotonic() - begin, 1))
    if study.state == "failed":
        _clear(folder)
    _write_record(folder, {**key, "state": study.state, "study": asdict(study)})
    return study


def _plain(name: str) -> str:
    """Return a name for a folder: letters, digits and few signs."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".")[:_KEPT_NAME] or "capture"


def _record(folder: Path) -> dict[str, Any] | None:
    """Return what an earlier batch wrote about a folder; None where it wrote nothing or somebody changed it."""
    path = folder / RECORD
    if not path.is_file() or not is_unchanged(path):
        return None
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    write_whole(folder / RECORD, sealed((json.dumps({**record, "seal": EMPTY_SEAL}, indent=1) + "\n").encode()))


def _known(folder: Path, key: dict[str, str]) -> Study | None:
    """Return the study of an earlier batch, unless the machine was at fault or its report is gone."""
    record = _record(folder)
    if record is None or {name: record.get(name) for name in key} != key or record["state"] == "running":
        return None
    gain = record["study"]["gain_percent"]
    study = Study(
        **{
            **record["study"],
            "gain_percent": None if gain is None else tuple(gain),
            "findings": tuple(record["study"]["findings"]),
        }
    )
    if study.state == "failed":
        return study if study.exit_code == HindflightError.exit_code else None
    return replace(study, state="unchanged") if (folder / "report.html").is_file() else None


def _prepare(folder: Path, key: dict[str, str], *, force: bool) -> None:
    """Make an empty folder with a record that says `running`.

    HindflightError: it holds what no batch wrote, or what somebody changed since.
    """
    if folder.exists():
        if _record(folder) is None and any(folder.iterdir()) and not force:
            raise HindflightError(
                f"{folder} exists, and hindflight batch did not write it or it was changed since",
                "choose another folder with -o, or replace it with --force",
            )
        check_outputs([folder / name for name in _WRITTEN], (), force=force)
        _clear(folder)
    with plain_os_errors(f"writing {folder}"):
        folder.mkdir(exist_ok=True)
    _write_record(folder, {**key, "state": "running"})


def _clear(folder: Path) -> None:
    """Remove what a study wrote, and nothing else."""
    for name in _WRITTEN:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _in_its_own_process(study: Study, capture: Path, folder: Path, settings: Settings) -> Study:
    """Return the study of a separate process, which ends when this one is interrupted."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    job = (study, capture, folder, settings.choice, settings.threads)
    process = context.Process(target=_answer, args=(sender, job))
    # Until each of the two knows what a signal means to it, signals wait.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        sender.close()
        answer: Study = receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode is not None and process.exitcode > 0 and process.exitcode != _TERMINATED:
            return _failed(study, "this is a bug in hindflight: its process ended early", "please report it", 1)
        text = "the process that studied it was ended: most likely it ran out of memory"
        return _failed(study, text, "give a part of the capture, or a machine with more memory", 3)
    except BaseException:
        _end(process)
        _clear(folder)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        sender.close()
        receiver.close()
    process.join()
    return answer


def _answer(sender: Connection, job: tuple[Study, Path, Path, Choice, int | None]) -> None:
    """Study in this process and send the answer. Ctrl-C reaches the whole process group; the parent answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(_TERMINATED))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    sender.send(_study(*job))


def _end(process: SpawnProcess) -> None:
    """End a process: it has some time to remove what it has half written."""
    if process.pid is None:
        return
    process.terminate()
    process.join(_END_S)
    process.kill()
    process.join()


def _failed(study: Study, error: str, hint: str | None, exit_code: int) -> Study:
    return replace(study, state="failed", folder="", error=error, hint=hint or "", exit_code=exit_code)


def _study(study: Study, capture: Path, folder: Path, choice: Choice, threads: int | None) -> Study:
    """Run the study in this process. Every error becomes its state."""
    from hindflight.replay.experiment.experiment import Execution
    from hindflight.workflow import WhatIf, study_capture

    try:
        job = WhatIf([capture], folder, None, choice, f"hindflight batch of {name_to_text(capture)}")
        result, _ = study_capture(job, Execution(threads))
        findings = result.tables["findings"].to_pylist()
    except MemoryError:
        return _failed(study, "out of memory", "give a part of the capture, or a machine with more memory", 3)
    except OSError as error:
        return _failed(study, f"{error.strerror or error}", None, MachineError.exit_code)
    except HindflightError as error:
        return _failed(study, error.message, error.hint, error.exit_code)
    except Exception as error:  # A bug in one study must not stop the others.
        return _failed(study, f"this is a bug in hindflight: {type(error).__name__}: {error}", "please report it", 1)
    captured = _first(findings, "self_check", "goodput") or _first(findings, "key_numbers", "goodput")
    checked = _first(findings, "self_check", "goodput_difference")
    advised = next((r for r in findings if r["section"] == "recommendation" and r["verdict"] == "pass"), None)
    return replace(
        study,
        report=name_to_text(folder / "report.html"),
        goodput_bps=None if captured is None else captured["value"],
        self_check=None if checked is None else checked["verdict"],
        best=None if advised is None else advised["subject"],
        gain_percent=None if advised is None else (advised["value"], advised["low"], advised["high"]),
        findings=tuple(row["text"] for row in findings if row["section"] == "summary"),
    )


def _first(findings: list[dict[str, Any]], section: str, metric: str) -> dict[str, Any] | None:
    return next((row for row in findings if (row["section"], row["metric"]) == (section, metric)), None)
