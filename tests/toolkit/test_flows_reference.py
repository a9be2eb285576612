"""Every annotated column of `segments` compared with a slow reference, on recorded flows of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from hindflight.toolkit import demo
from hindflight.toolkit.capture import load_capture
from tests.reference.flows import annotate

ROOT = Path(__file__).parents[2]
CAPTURES = [
    ROOT / "fixtures" / "kernel" / "S2-reno" / "snd.pcap.xz",
    Path(demo.__file__).parent / "geo-burst-loss.pcap.xz",
]


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_annotations_equal_the_reference(capture: Path) -> None:
    rows = load_capture(capture).segments.to_pylist()
    assert len(rows) > 1000
    notes = annotate(rows)
    for row, note in zip(rows, notes, strict=True):
        assert {name: row[name] for name in note} == note, row["record"]
    assert sum(note["retransmission"] for note in notes) > 10
    assert sum(note["rtt_ns"] is not None for note in notes) > 500
