"""Applications of a scenario that write for a time, or may have done."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from hindflight.replay.scenario.applications import Bursts, Writes


def test_writes_with_ends_have_a_second_reading() -> None:
    given: dict[str, Any] = {"kind": "writes", "at": ["0 s", "2 s"], "sizes": ["100 kB", "200 kB"]}
    until: dict[str, Any] = {"until": ["1 s", "2.5 s"]}
    assert Writes(**given).for_a_time() is None
    timed = Writes(**given, **until)
    assert timed.engine()["kind"] == "writes"
    assert timed.for_a_time() == Bursts(kind="bursts", at=given["at"], **until).engine()


@pytest.mark.parametrize("until", [["1 s"], ["3 s", "4 s"], ["1 s", "1.5 s"]])
def test_a_burst_that_ends_outside_its_time_is_refused(until: list[str]) -> None:
    with pytest.raises(ValidationError, match="until"):
        Bursts(kind="bursts", at=["0 s", "2 s"], until=until)  # type: ignore[arg-type]
