"""Exports of a report: its charts as PNG, SVG or HTML files, its what-if runs as CSV.

vl-convert renders the charts; no browser is needed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Literal

import altair as alt
import polars as pl
import vl_convert
from polars import selectors

from hindflight.reports import page
from hindflight.reports.bundle import vega_lite_version
from hindflight.reports.frames import Tables, read
from hindflight.reports.inert import inert
from hindflight.reports.sections import Figure, Section, Source, sections
from hindflight.reports.style import Mode, recolour, vega_config
from hindflight.toolkit.errors import MachineError, ReportError
from hindflight.toolkit.files import check_outputs, write_whole
from hindflight.toolkit.seal import SEAL_NOTE, sealed
from hindflight.toolkit.text import csv_cell

Format = Literal["png", "svg", "html"]
_SCALE = 2.0
_SEAL_OF: dict[Format, bytes] = {"png": b"", "svg": f"\n<!-- {SEAL_NOTE} -->\n".encode()}
"""Appended to the content for the digest of the file; a PNG has a chunk for it."""


def write_charts(
    tables: Tables, folder: str | os.PathLike[str], form: Format = "png", mode: Mode = "light", *, force: bool = True
) -> list[Path]:
    """Write every chart that has data into `folder`, one file each, and return the paths.

    Files are numbered in the order of the report and named after their section and title; an HTML file holds one chart
    that zooms. Raises ReportError if no chart has data, MachineError if a file cannot be written. Without `force`,
    raises HindflightError if one of the files must not be replaced (toolkit/files.py), before it writes the first.
    """
    return list(write_figures(sections(Source(tables), {}), folder, form, mode, force=force).values())


def write_figures(
    found: Sequence[Section],
    folder: str | os.PathLike[str],
    form: Format = "png",
    mode: Mode = "light",
    *,
    force: bool = True,
) -> dict[str, Path]:
    """Write every chart of sections into `folder` as `write_charts`; return the path of each by its key."""
    figures = [each for section in found for each in _figures(section, section.key)]
    if not figures:
        raise ReportError("These tables hold no data for any chart.")
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(f"cannot create the folder {target}: {error.strerror or error}") from error
    rendered: dict[Path, bytes] = {}
    paths: dict[str, Path] = {}
    for number, (place, figure) in enumerate(figures, 1):
        spec = inert(figure.chart.to_dict())
        title = spec["title"]["text"]
        path = target / f"{number:02d}-{_file_name(place, title)}.{form}"
        paths[figure.key] = path
        if form == "html":
            rendered[path] = sealed(page.render(title, "", [Section("chart", place, parts=[figure])]).encode())
        else:
            rendered[path] = sealed(_render(recolour(spec, mode), form, mode) + _SEAL_OF[form])
    check_outputs(rendered, (), force=force)
    for path, content in rendered.items():
        write_whole(path, content)
    return paths


def write_chart(chart: alt.TopLevelMixin, path: Path, mode: Mode = "light", *, force: bool = True) -> Path:
    """Write one chart as SVG if `path` ends in .svg, else as PNG, and return the path.

    Raises MachineError if the file cannot be written. Without `force`, raises HindflightError if the file must not be
    replaced. An SVG of one chart carries no digest.
    """
    if path.suffix == ".svg":
        write_whole(path, _render(recolour(inert(chart.to_dict()), mode), "svg", mode), force=force)
    else:
        write_whole(path, sealed(_render(recolour(inert(chart.to_dict()), mode), "png", mode)), force=force)
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


def write_what_if_csv(tables: Tables, path: str | os.PathLike[str], *, force: bool = True) -> Path:
    """Write the what-if runs as CSV and return the path: one row per run and flow, units in the column names.

    Raises ReportError if there is no what-if run, MachineError if the file cannot be written. Without `force`, raises
    HindflightError if the file must not be replaced.
    """
    columns = [
        "run_id", "scenario", "flow", "role", "variant", "proxy", "purpose", "channel_mode", "seed", "flow_id",
        "duration_ns", "completed", "reset_ns", "delivered_bytes", "goodput_bps", "segments_out", "retransmissions",
        "rtos", "recoveries", "channel_losses", "queue_losses", "aqm_losses", "outage_losses", "control_losses",
        "ecn_marks", "ecn_reductions", "srtt_mean_ns", "rtt_p95_ns", "proxy_held_max_bytes", "proxy_stored_max_bytes",
        "proxy_stored_mean_bytes", "proxy_delay_mean_ns", "proxy_lost_bytes", "proxy_corrupted_bytes", "proxy_refused",
        "proxy_unsplit", "proxy_timeouts", "proxy_dropped", "proxy_filtered_acks", "proxy_suppressed_acks",
        "proxy_spoofed_acks", "proxy_retransmissions", "one_way_delay_p50_ns", "one_way_delay_p95_ns",
        "app_delay_p50_ns", "app_delay_p95_ns", "app_delay_p99_ns", "app_delay_max_ns", "jitter_ns", "stalls",
        "stalled_ns", "pages", "page_load_p50_ns", "page_load_p95_ns",
    ]  # fmt: skip
    runs = read(tables, "runs", columns).filter(pl.col("purpose") == "what_if").select(columns)
    if runs.is_empty():
        raise ReportError("No variant was replayed, so there are no what-if runs to write.")
    target = Path(path)
    texts = selectors.string(include_categorical=True)
    runs = runs.with_columns(texts.cast(pl.String).map_elements(csv_cell, return_dtype=pl.String))
    write_whole(target, runs.write_csv(), force=force)
    return target
