"""For all tests: Ctrl-C as at a terminal. A runner that was started in the background ignores SIGINT, and so would we."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
