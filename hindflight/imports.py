"""Imports of heavy modules while the process waits for something else."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from threading import Thread


def import_meanwhile(module: str) -> None:
    """Import a module on a separate thread. Who needs it later waits for that, and reports an error if there is one.

    The process ends no sooner: a thread that the interpreter stops within native code may abort it.
    """
    Thread(target=_import, args=(module,), name=f"import {module}").start()


def _import(module: str) -> None:
    with suppress(ImportError, RuntimeError):  # The latter, if a module needs what the end of the process has closed.
        import_module(module)
