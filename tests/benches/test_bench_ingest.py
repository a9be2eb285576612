"""The time of a peer in `make bench-ingest` has a limit."""

from __future__ import annotations

import pytest

from benches.bench_ingest import run


def test_a_peer_that_takes_too_long_is_stopped_and_said_to_be() -> None:
    took = run(("sleep", "60"), limit_s=0.2)
    assert took.stopped
    assert 0.2 <= took.wall_s < 30


def test_a_program_that_ends_in_time_is_not_stopped() -> None:
    assert not run(("true",), limit_s=60.0).stopped
    assert not run(("true",)).stopped
    with pytest.raises(RuntimeError):
        run(("false",), limit_s=60.0)
