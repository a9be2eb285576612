"""Exports of a report: its charts as PNG or SVG files, its what-if runs as CSV.

vl-convert renders the charts; no browser is needed.
"""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Literal

import altair as alt
import polars as pl
import vl_convert

from hindflight.reports.bundle import vega_lite_version
from hindflight.reports.frames import Tables, read
from hindflight.reports.sections import Figure, Section, sections
from hindflight.reports.style import Mode, recolour, vega_config
from hindflight.toolkit.errors import MachineError, ReportError
from hindflight.toolkit.files import write_whole

Format = Literal["png", "svg"]
_SCALE = 2.0


def write_charts(
    tables: Tables, folder: str | os.PathLike[str], form: Format = "png", mode: Mode = "light"
) -> list[Path]:
    """Write every chart that has data into `folder`, one file each, and return the paths.

    Files are numbered in the order of the report and named after their section and title. Raises ReportError if no
    chart has data, MachineError if a file cannot be written.
    """
    figures = [found for section in sections(tables, {}) for found in _figures(section, section.key)]
    if not figures:
        raise ReportError("These tables hold no data for any chart.")
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(f"cannot create the folder {target}: {error.strerror or error}") from error
    paths = []
    for number, (place, figure) in enumerate(figures, 1):
        spec = figure.chart.to_dict()
        path = target / f"{number:02d}-{_file_name(place, spec['title']['text'])}.{form}"
        write_whole(path, _render(recolour(spec, mode), form, mode))
        paths.append(path)
    return paths


def write_chart(chart: alt.TopLevelMixin, path: Path, mode: Mode = "light") -> Path:
    """Write one chart as SVG if `path` ends in .svg, else as PNG, and return the path.

    Raises MachineError if the file cannot be written.
    """
    form: Format = "svg" if path.suffix == ".svg" else "png"
    write_whole(path, _render(recolour(chart.to_dict(), mode), form, mode))
    return path


def _figures(section: Section, place: str) -> list[tuple[str, Figure]]:
    found = []
    for part in section.parts:
        if isinstance(part, Figure):
            found.append((place, part))
        elif isinstance(part, Section):
            found += _figures(part, part.key)
    return found


def _file_name(place: str, title: str) -> str:
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in f"{place} {title}".lower())
    return "-".join(words.split())[:80]


def _render(spec: dict[str, object], form: Format, mode: Mode) -> bytes:
    config, version = vega_config(mode), vega_lite_version()
    if form == "png":
        png: bytes = vl_convert.vegalite_to_png(spec, vl_version=version, config=config, scale=_SCALE)
        return png
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=version, config=config)
    start = svg.index(">") + 1
    return f"{svg[:start]}<title>{escape(str(spec['description']))}</title>{svg[start:]}".encode()


def write_what_if_csv(tables: Tables, path: str | os.PathLike[str]) -> Path:
    """Write the what-if runs as CSV and return the path: one row per run and flow, units in the column names.

    Raises ReportError if there is no what-if run, MachineError if the file cannot be written.
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
        raise ReportError("No variant was replayed, so there are no what-if runs to write.")
    target = Path(path)
    write_whole(target, runs.write_csv())
    return target
