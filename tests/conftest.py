"""For all tests: Ctrl-C as at a terminal; a runner that was started in the background ignores it, and so would we."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
