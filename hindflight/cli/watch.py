"""Work in a child process that the parent ends on a signal, at a time limit, or when its memory runs out.

DuckDB may compute for minutes without a look at a signal, and allocates beyond its own memory limit. A process can be
ended at any moment and has a limit that the kernel keeps.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import typer

from hindflight.cli.errors import OURS, run
from hindflight.toolkit.errors import HindflightError, MachineError

_PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a child gets when its parent ends."""


def watched(work: Callable[[], None], timeout_s: float | None) -> NoReturn:
    """Do `work` in a child of this process and end with its exit code. Call it before any thread starts.

    HindflightError after `timeout_s`. MachineError where the kernel ends the child.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    parent = os.getpid()
    # Until each of the two knows what a signal means to it, signals wait.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, parent, mask)
    os.close(writing)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # The child's end of the pipe closes when the child ends, however it ends.
        ended, _, _ = select.select([reading], [], [], timeout_s)
    except BaseException:
        _end(child)
        raise
    finally:
        os.close(reading)
    if not ended:
        _end(child)
        raise HindflightError(
            f"stopped after {timeout_s:g} s", "a longer --timeout, or a query that reads fewer rows, may end"
        )
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        name = signal.Signals(-code).name
        raise MachineError(f"the query was ended by {name}, most likely for lack of memory", "select fewer rows")
    raise typer.Exit(code)


def limit_data(memory: int) -> None:
    """Let the kernel refuse this process private memory beyond what it has now and `memory` octets."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    soft = used + memory if hard == resource.RLIM_INFINITY else min(used + memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _work(work: Callable[[], None], parent: int, mask: set[int]) -> NoReturn:
    """Do `work` with the signal mask `mask` and end this process."""
    code = OURS
    try:
        # Ctrl-C reaches the whole process group; the parent answers it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _end_with(parent)
        # What C++ says before it aborts for lack of memory goes nowhere: the parent reports the end in one line.
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        code = run(lambda _words: work(), sys.argv[1:])
    finally:
        sys.stderr.flush()
        os._exit(code)


def _end_with(parent: int) -> None:
    """End this process when its parent ends, even by SIGKILL."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # It ended before.
        os._exit(OURS)


def _end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
