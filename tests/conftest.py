"""Enables Ctrl-C in all tests, since a test runner that was started in the background ignores SIGINT, and gives them a
cache folder, so that they neither read nor write that of the user."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the tests, and the processes that they start, keep their cache in a folder of this test session.

    All workers of a session have the same one, since what is kept there takes seconds to build.
    """
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
        yield
