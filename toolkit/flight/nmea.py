"""NMEA 0183 sentences of a receiver through pynmea2: position, speed, course, satellites; times in UTC.

RMC and ZDA hold the date, which then holds for the GGA sentences that follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from hindflight.toolkit.flight.external import guarded, library
from hindflight.toolkit.flight.model import Gatherer, Samples
from hindflight.toolkit.logs.octets import LogFile

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SENTENCE = re.compile(rb"\$[A-Z]{2}(?:RMC|GGA|ZDA|VTG|GSA|GSV|GLL),[^$\r\n]{1,120}\*[0-9A-Fa-f]{2}")
_KNOT_M_S = 1852 / 3600


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` holds sentences."""
    return len(_SENTENCE.findall(head[:4096])) >= 2


def read(file: LogFile) -> Iterator[Samples]:
    """Yield position, speed and satellites over time."""
    pynmea2 = library("pynmea2", file, "a log of NMEA sentences")
    yield from guarded(file, lambda: _read(file, pynmea2))


def _read(file: LogFile, pynmea2: Any) -> Iterator[Samples]:
    gatherer = Gatherer()
    day: date | None = None
    for line in file.lines():
        found = _SENTENCE.search(line.text)
        message = None if found is None else _parsed(pynmea2, found[0].decode("ascii"))
        if message is None:
            if line.text.strip():
                file.issues.add(line.record, line.offset, "log_damaged", "a line without a whole sentence was left out")
            continue
        kind = message.sentence_type
        if kind == "RMC" and message.datestamp is not None:
            day = message.datestamp
        elif kind == "ZDA":
            day = date(int(message.year), int(message.month), int(message.day))
        moment = getattr(message, "timestamp", None)
        if kind not in ("RMC", "GGA") or not isinstance(moment, time):
            continue
        if day is None:
            file.issues.add(line.record, line.offset, "log_clock", "a sentence before the first date was left out")
            continue
        yield from gatherer.add(kind, _t_ns(day, moment), _fields(kind, message))
    yield from gatherer.rest()


def _parsed(pynmea2: Any, sentence: str) -> Any:
    """The sentence; None if its checksum or a field is wrong."""
    try:
        message = pynmea2.parse(sentence, check=True)
        if message.sentence_type == "ZDA":
            date(int(message.year), int(message.month), int(message.day))
        elif message.sentence_type in ("RMC", "GGA"):
            _fields(message.sentence_type, message)
    except (pynmea2.ParseError, ValueError, TypeError, AttributeError, OverflowError):
        return None
    return message


def _t_ns(day: date, moment: time) -> int:
    at = datetime.combine(day, moment.replace(tzinfo=None), UTC)
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000


def _fields(kind: str, message: Any) -> dict[str, float | None]:
    fields: dict[str, float | None] = {}
    if message.lat and message.lon:
        fields |= {"lat_deg": message.latitude, "lon_deg": message.longitude}
    if kind == "RMC":
        speed, course = message.spd_over_grnd, message.true_course
        fields["groundspeed_m_s"] = None if speed is None else float(speed) * _KNOT_M_S
        fields["course_deg"] = None if course is None else float(course)
    else:
        altitude, satellites = message.altitude, message.num_sats
        fields["alt_m"] = None if altitude is None else float(altitude)
        fields["gps_satellites"] = float(satellites) if satellites else None
        fields["gps_fix"] = float(message.gps_qual) if message.gps_qual is not None else None
    return fields
