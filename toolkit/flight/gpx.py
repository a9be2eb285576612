"""GPX tracks through gpxpy: position and altitude, times in UTC.

The points are parsed a few hundred at a time, so that a long track needs no more memory, and a damaged point or a file
that was cut loses no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from hindflight.toolkit.flight.external import guarded, library
from hindflight.toolkit.flight.model import Gatherer, Samples
from hindflight.toolkit.logs.octets import MAX_LINE_BYTES, LogFile

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_POINT = re.compile(rb"<trkpt\b.*?</trkpt\s*>", re.DOTALL)
_ROOT = re.compile(rb"<gpx\b[^<>]*>")
_POINTS = 500


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is GPX."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"<gpx" in head[:4096]


def read(file: LogFile) -> Iterator[Samples]:
    """Yield the points of all tracks that have a time."""
    gpxpy = library("gpxpy", file, "a GPX track")
    yield from guarded(file, lambda: _read(file, gpxpy))


def _read(file: LogFile, gpxpy: Any) -> Iterator[Samples]:
    gatherer = Gatherer()
    root = b"<gpx>"
    batch: list[tuple[int, int, bytes]] = []
    for number, (offset, before, point) in enumerate(_points(file), 1):
        found = _ROOT.search(before) if number == 1 else None
        root = root if found is None else found[0]
        batch.append((number, offset, point))
        if len(batch) == _POINTS:
            yield from _parsed(file, gpxpy, root, batch, gatherer)
            batch = []
    yield from _parsed(file, gpxpy, root, batch, gatherer)
    yield from gatherer.rest()


def _points(file: LogFile) -> Iterator[tuple[int, bytes, bytes]]:
    """Each point with its offset and the text before it; a point that is not closed becomes an issue."""
    rest, offset, number = b"", 0, 0
    for chunk in file.chunks():
        rest += chunk
        at = 0
        for found in _POINT.finditer(rest):
            number += 1
            yield offset + found.start(), rest[at : found.start()], found[0]
            at = found.end()
        if len(rest) - at > MAX_LINE_BYTES:
            file.issues.add(number + 1, offset + at, "log_damaged", "octets without a whole point were left out")
            at = len(rest)
        offset, rest = offset + at, rest[at:]
    if b"</gpx" not in rest:
        file.issues.add(number + 1, offset, "log_truncated", "the document is not closed; its whole points were kept")


def _parsed(
    file: LogFile, gpxpy: Any, root: bytes, batch: list[tuple[int, int, bytes]], gatherer: Gatherer
) -> Iterator[Samples]:
    """Parse the points together, and one by one if that fails."""
    text = root + b"<trk><trkseg>" + b"".join(point for _, _, point in batch) + b"</trkseg></trk></gpx>"
    try:
        points = [
            point
            for track in gpxpy.parse(text.decode("utf-8", "replace")).tracks
            for segment in track.segments
            for point in segment.points
        ]
    except Exception as error:
        if len(batch) == 1:
            number, offset, _ = batch[0]
            reason = f"a point that gpxpy cannot read was left out ({type(error).__name__})"
            file.issues.add(number, offset, "log_damaged", reason)
            return
        points = []
    if len(points) != len(batch):
        if len(batch) > 1:
            for one in batch:
                yield from _parsed(file, gpxpy, root, [one], gatherer)
        return
    for (number, offset, _), point in zip(batch, points, strict=True):
        if point.time is None:
            file.issues.add(number, offset, "log_damaged", "a point without a time was left out")
            continue
        at = point.time if point.time.tzinfo is not None else point.time.replace(tzinfo=UTC)
        values = {"lat_deg": point.latitude, "lon_deg": point.longitude, "alt_m": point.elevation}
        yield from gatherer.add("point", (at - _EPOCH) // timedelta(microseconds=1) * 1000, values)
