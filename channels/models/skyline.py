"""Skylines: the buildings of a street, generated or from a file.

The file is CSV with the columns side (left, right), start_m, end_m, height_m. See docs/channels/street.md.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.channels.models.parameters import read_text
from hindflight.toolkit.errors import ChannelError
from hindflight.toolkit.files import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

Building = tuple[float, float, float]
"""Start, end and height of a facade in m."""

CHART_LENGTH_M = 800.0
"""Length of the street that a chart shows, in m."""

COLUMNS = ("side", "start_m", "end_m", "height_m")


@dataclass(frozen=True, slots=True)
class Skyline:
    """A street: its length, the distances from the route to the left and right facades, the buildings of both sides."""

    length_m: float
    distance_m: tuple[float, float]
    left: list[Building]
    right: list[Building]

    def kernel(self) -> tuple[float, tuple[float, float], list[Building], list[Building]]:
        """Return the street in the format of the kernels."""
        return self.length_m, self.distance_m, self.left, self.right


def read_skyline(path: Path, *, width_m: float, lateral: float) -> Skyline:
    """Read a skyline; the street ends with its last building. Raises ChannelError with the line."""
    reader = csv.DictReader(io.StringIO(read_text(path)))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise ChannelError(f"{path}: a skyline has the columns {', '.join(COLUMNS)}")
    sides: dict[str, list[Building]] = {"left": [], "right": []}
    for number, row in enumerate(reader, 2):
        side, building = _building(row, f"{path}: line {number}")
        sides[side].append(building)
    length_m = max((end for side in sides.values() for _, end, _ in side), default=0.0)
    if length_m <= 0:
        raise ChannelError(f"{path}: lists no building")
    for name, row_of_buildings in sides.items():
        row_of_buildings.sort()
        for (_, end, _), (start, _, _) in pairwise(row_of_buildings):
            if start < end:
                raise ChannelError(f"{path}: two buildings of the {name} side overlap at {start:g} m")
    return Skyline(length_m, (width_m * lateral, width_m * (1 - lateral)), sides["left"], sides["right"])


def _building(row: dict[str, str], where: str) -> tuple[str, Building]:
    try:
        start, end, height = (float(row[name]) for name in COLUMNS[1:])
    except (TypeError, ValueError):
        raise ChannelError(f"{where}: start_m, end_m and height_m must be numbers") from None
    if row["side"] not in ("left", "right"):
        raise ChannelError(f"{where}: side is {row['side']!r}; it must be left or right")
    if not all(map(math.isfinite, (start, end, height))) or not 0 <= start < end or height < 0:
        raise ChannelError(f"{where}: a building needs 0 <= start_m < end_m and a height of 0 or more")
    return row["side"], (start, end, height)


def is_skyline(path: Path) -> bool:
    """Return whether the first line of a file is the header of a skyline."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline(200).strip() == ",".join(COLUMNS).encode()


def chart_data(skyline: Skyline) -> pa.Table:
    """Return the data of a skyline's chart: side, start_m, end_m, height_m, up to `CHART_LENGTH_M`."""
    import pyarrow as pa

    rows = [
        {"side": side, "start_m": start, "end_m": min(end, CHART_LENGTH_M), "height_m": height}
        for side, buildings in (("left", skyline.left), ("right", skyline.right))
        for start, end, height in buildings
        if start < CHART_LENGTH_M
    ]
    types = [pa.string(), *[pa.float64()] * 3]
    return pa.Table.from_pylist(rows, pa.schema(list(zip(COLUMNS, types, strict=True))))


def write_skyline(skyline: Skyline, path: Path, *, force: bool = True) -> None:
    """Write the buildings as CSV. Without `force`, raises HindflightError if the file must not be replaced."""
    lines = [",".join(COLUMNS)]
    for name, side in (("left", skyline.left), ("right", skyline.right)):
        lines += [f"{name},{start!r},{end!r},{height!r}" for start, end, height in side]
    write_whole(path, "\n".join(lines) + "\n", force=force)
