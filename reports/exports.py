"""Charts as pictures and the what-if table as CSV: what other documents want of a report.

Draws through vl-convert, without a browser. Read reports/charts for what each chart shows.
"""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Literal

import altair as alt
import polars as pl
import vl_convert
from polars import selectors

from hindflight.reports.bundle import vega_lite_version
from hindflight.reports.frames import Tables, read
from hindflight.reports.sections import Picture, Section, sections
from hindflight.reports.style import Mode, recolour, vega_config
from hindflight.toolkit.errors import MachineError, ReportError
from hindflight.toolkit.files import check_outputs, write_whole
from hindflight.toolkit.seal import SEAL_NOTE, sealed
from hindflight.toolkit.text import csv_cell

Format = Literal["png", "svg"]
_SCALE = 2.0
_SEAL_OF: dict[Format, bytes] = {"png": b"", "svg": f"\n<!-- {SEAL_NOTE} -->\n".encode()}
"""What follows the content for the digest of the file; a PNG has a chunk for it."""


def write_charts(
    tables: Tables, folder: str | os.PathLike[str], form: Format = "png", mode: Mode = "light", *, force: bool = True
) -> list[Path]:
    """Write every chart that the tables can give into `folder`, one file each, and return the paths.

    Files are numbered in the report's order and named after their section and title. ReportError where no chart can
    be drawn, MachineError where a file cannot be written. Without `force` HindflightError, before the first is
    written, if one may not be replaced (toolkit/files.py).
    """
    pictures = [found for section in sections(tables, {}) for found in _pictures(section, section.key)]
    if not pictures:
        raise ReportError("There is nothing to draw in these tables.")
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(f"cannot make {target}: {error.strerror or error}") from error
    drawn: dict[Path, bytes] = {}
    for number, (place, picture) in enumerate(pictures, 1):
        spec = picture.chart.to_dict()
        path = target / f"{number:02d}-{_file_name(place, spec['title']['text'])}.{form}"
        drawn[path] = sealed(_drawn(recolour(spec, mode), form, mode) + _SEAL_OF[form])
    check_outputs(drawn, (), force=force)
    for path, content in drawn.items():
        write_whole(path, content)
    return list(drawn)


def write_chart(chart: alt.TopLevelMixin, path: Path, mode: Mode = "light", *, force: bool = True) -> Path:
    """Write one chart, as its file's name says (.png, .svg), and return the path; MachineError if it cannot be.

    Without `force` HindflightError if the file may not be replaced; an SVG carries no digest here.
    """
    if path.suffix == ".svg":
        write_whole(path, _drawn(recolour(chart.to_dict(), mode), "svg", mode), force=force)
    else:
        write_whole(path, sealed(_drawn(recolour(chart.to_dict(), mode), "png", mode)), force=force)
    return path


def _pictures(section: Section, place: str) -> list[tuple[str, Picture]]:
    found = []
    for part in section.parts:
        if isinstance(part, Picture):
            found.append((place, part))
        elif isinstance(part, Section):
            found += _pictures(part, part.key)
    return found


def _file_name(place: str, title: str) -> str:
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in f"{place} {title}".lower())
    return "-".join(words.split())[:80]


def _drawn(spec: dict[str, object], form: Format, mode: Mode) -> bytes:
    config, version = vega_config(mode), vega_lite_version()
    if form == "png":
        png: bytes = vl_convert.vegalite_to_png(spec, vl_version=version, config=config, scale=_SCALE)
        return png
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=version, config=config)
    start = svg.index(">") + 1
    return f"{svg[:start]}<title>{escape(str(spec['description']))}</title>{svg[start:]}".encode()


def write_what_if_csv(tables: Tables, path: str | os.PathLike[str], *, force: bool = True) -> Path:
    """Write the what-if runs as CSV, a row per run and flow, units in the names of the columns; return the path.

    ReportError without such runs, MachineError where the file cannot be written. Without `force` HindflightError if the
    file may not be replaced.
    """
    columns = [
        "run_id", "scenario", "flow", "role", "variant", "proxy", "purpose", "channel_mode", "seed", "flow_id",
        "duration_ns", "completed", "reset_ns", "delivered_bytes", "goodput_bps", "segments_out", "retransmissions",
        "rtos", "recoveries", "channel_losses", "queue_losses", "aqm_losses", "outage_losses", "control_losses",
        "ecn_marks", "ecn_reductions", "srtt_mean_ns", "rtt_p95_ns", "proxy_held_max_bytes", "app_delay_p50_ns",
        "app_delay_p95_ns", "app_delay_max_ns", "jitter_ns", "stalls", "stalled_ns", "pages", "page_load_p50_ns",
        "page_load_p95_ns",
    ]  # fmt: skip
    runs = read(tables, "runs", columns).filter(pl.col("purpose") == "what_if").select(columns)
    if runs.is_empty():
        raise ReportError("No variant was replayed, so there is no what-if table.")
    whole = Path(path)
    texts = selectors.string(include_categorical=True)
    runs = runs.with_columns(texts.cast(pl.String).map_elements(csv_cell, return_dtype=pl.String))
    write_whole(whole, runs.write_csv(), force=force)
    return whole
