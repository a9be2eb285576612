"""Enables Ctrl-C in all tests: a test runner that was started in the background ignores SIGINT."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
