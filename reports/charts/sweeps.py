"""Goodput over what scenarios vary: the cache of the proxies, or the share of packets that the channel loses.

A sweep is one comparison of proxies with different caches, or several workspaces of scenarios that differ. Draws
`findings` (sections what_if and setup) and `runs`. Computes no statistic but the share of packets that were lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import ChartText, inline, layered_chart, x_axis, y_axis
from hindflight.reports.frames import Tables, read, runs_with_subject
from hindflight.reports.style import category_colours
from hindflight.toolkit.errors import ReportError
from hindflight.toolkit.schema import FINGERPRINT

MIN_POINTS = 3
"""Minimum number of values of a sweep: two are a comparison, which other charts show."""
_LOG_FROM = 30
"""Quotient of the largest and the smallest value from which the axis is logarithmic."""
_LOG_MARGIN = 1.25
"""Factor from the outermost values to the ends of a logarithmic axis."""
_Names = dict[tuple[str, ...], str]
"""The name of each series by its variant and nodes, and the policies of its proxies."""

_COLUMNS = {"series": pl.String, "x": pl.Float64, "mbps": pl.Float64, "low": pl.Float64, "high": pl.Float64}


@dataclass(frozen=True, slots=True)
class _Cache:
    """Memory of one proxy, the node where it is, and its other keys."""

    node: str
    policy: str
    size: float
    unit: str


def has_cache_sweep(tables: Tables) -> bool:
    """Return whether proxies of one comparison differ in nothing but their caches, of at least MIN_POINTS sizes."""
    return not _swept(_cache_points(tables, {})[0]).is_empty()


def goodput_over_cache(sources: Sequence[Tables]) -> alt.LayerChart:
    """Draw the goodput of each variant over the memory of the proxies that split its connection, with intervals.

    Reads `runs` and `findings` of one or several workspaces. Raises ReportError without MIN_POINTS sizes of a cache.
    """
    used: _Names = {}
    found = [_cache_points(tables, used) for tables in sources]
    units = {unit for _, unit in found if unit}
    points = _swept(pl.concat([rows for rows, _ in found]))
    if points.is_empty() or len(units) > 1:
        raise ReportError(f"No proxy was compared with {MIN_POINTS} sizes of its cache and the same other keys.")
    return _chart(points, "Goodput over the cache of the proxies", f"Cache, summed over the proxies [{units.pop()}]")


def goodput_over_loss(sources: Sequence[Tables]) -> alt.LayerChart:
    """Draw the goodput of each variant and proxy over the share of data packets that the channel lost.

    All points of a workspace have the same place: the share that it lost of those of one proxy which all workspaces
    have, `none` if they can, because a packet of a split connection is sent, and counted, once per part of the path.

    Reads `runs` and `findings` of several workspaces whose scenarios give their links other losses and differ in
    nothing else. Raises ReportError if they do, or with fewer than MIN_POINTS different losses of data.
    """
    if len({_fingerprint(tables) for tables in sources}) != 1 or not _fingerprint(sources[0]):
        raise ReportError("These scenarios differ in more than the loss models of their links.")
    models = [(_models(tables, "loss"), _models(tables, "reverse_loss")) for tables in sources]
    if len({data for data, _ in models}) != len(set(models)):
        raise ReportError("Some of these scenarios differ in the losses of ACKs alone.")
    reference = _reference(sources)
    points = _swept(pl.concat([_loss_points(tables, reference) for tables in sources]))
    if len(set(models)) < MIN_POINTS or points.is_empty():
        raise ReportError(f"Fewer than {MIN_POINTS} of these scenarios differ in the loss models of their links.")
    sent = "without a proxy" if reference == "none" else f"with {reference}"
    return _chart(points, "Goodput over the error rate", f"Data packets that the channel lost, {sent} [%]")


def _models(tables: Tables, metric: str) -> tuple[tuple[str, str], ...]:
    return tuple(_setup(tables, metric).items())


def _fingerprint(tables: Tables) -> str:
    """Return what identifies the scenario but for its losses; empty in a workspace of an earlier version."""
    return _setup(tables, FINGERPRINT).get("scenario", "")


def _reference(sources: Sequence[Tables]) -> str:
    """Return the proxy whose runs give the place of a workspace. The scenarios are alike, so the first has them all."""
    proxies = _compared_runs(sources[0])["proxy"].unique(maintain_order=True).to_list()
    return "none" if "none" in proxies or not proxies else str(proxies[0])


def _setup(tables: Tables, metric: str) -> dict[str, str]:
    rows = read(tables, "findings", ["section", "subject", "metric", "text"])
    mine = rows.filter((pl.col("section") == "setup") & (pl.col("metric") == metric))
    return dict(mine.select("subject", "text").iter_rows())


def _compared_runs(tables: Tables) -> pl.DataFrame:
    runs = runs_with_subject(tables, ["purpose", "channel_mode", "segments_out", "channel_losses"])
    return runs.filter((pl.col("purpose") == "what_if") & (pl.col("channel_mode") != "replayed"))


def _goodputs(tables: Tables) -> pl.DataFrame:
    """Return variant, proxy, subject, and goodput with its interval, of what ran."""
    each = _compared_runs(tables).select("subject", "variant", "proxy").unique(maintain_order=True)
    rows = read(tables, "findings", ["section", "subject", "metric", "value", "low", "high"])
    means = rows.filter((pl.col("section") == "what_if") & (pl.col("metric") == "goodput")).drop_nulls("value")
    millions = {name: pl.col(column) / 1e6 for name, column in (("mbps", "value"), ("low", "low"), ("high", "high"))}
    return each.join(means.select("subject", **millions), on="subject", how="inner", maintain_order="left")


def _caches(tables: Tables) -> dict[str, _Cache]:
    """Return the cache of each proxy by its name."""
    nodes, policies = _setup(tables, "node"), _setup(tables, "policy")
    rows = read(tables, "findings", ["section", "subject", "metric", "value", "unit"])
    sizes = rows.filter((pl.col("section") == "setup") & (pl.col("metric") == "cache")).drop_nulls("value")
    return {
        name: _Cache(nodes.get(name, name), policies.get(name, ""), size, unit)
        for name, size, unit in sizes.select("subject", "value", "unit").iter_rows()
    }


def _cache_points(tables: Tables, used: _Names) -> tuple[pl.DataFrame, str]:
    """Return the points of goodput over cache, and the unit of the caches; both empty if they have several units.

    `used` has the names of the series so far, of all workspaces: other policies are another series.
    """
    caches = _caches(tables)
    points, units = [], set()
    for variant, proxy, mbps, low, high in _goodputs(tables).select("variant", "proxy", "mbps", "low", "high").rows():
        chain = [caches.get(name) for name in proxy.split("+")]
        known = [cache for cache in chain if cache is not None]
        if len(known) < len(chain):
            continue
        series = f"{variant}, through {'+'.join(cache.node for cache in known)}"
        key = (series, *(cache.policy for cache in known))
        number = sum(name == series for (name, *_) in used if (name, *_) != key) + 1
        name = used.setdefault(key, series if number == 1 else f"{series} ({number})")
        units |= {cache.unit for cache in known}
        points.append((name, sum(cache.size for cache in known), mbps, low, high))
    frame = pl.DataFrame(points if len(units) == 1 else [], schema=_COLUMNS, orient="row")
    return frame, units.pop() if len(units) == 1 else ""


def _loss_points(tables: Tables, reference: str) -> pl.DataFrame:
    """Return the points of goodput over what the channel lost of the packets of all variants with one proxy."""
    runs = _compared_runs(tables).filter(pl.col("proxy") == reference)
    sent, lost = (int(runs[column].sum()) for column in ("segments_out", "channel_losses"))
    found = _goodputs(tables).with_columns(x=pl.lit(100 * lost / sent if sent else None, dtype=pl.Float64))
    return found.drop_nulls("x").select(pl.col("subject").alias("series"), "x", "mbps", "low", "high").cast(_COLUMNS)  # type: ignore[arg-type]


def _swept(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points of each series with MIN_POINTS values and one goodput for each of them."""
    values = pl.col("x").n_unique().over("series")
    return points.filter((values >= MIN_POINTS) & (values == pl.len().over("series")))


def _chart(points: pl.DataFrame, title: str, across: str) -> alt.LayerChart:
    """Draw a line with marks and intervals for each series."""
    series = points["series"].unique(maintain_order=True).to_list()
    points = points.sort("x").with_columns(pl.col("x", "mbps", "low", "high").round(6))
    x = alt.X("x", type="quantitative", axis=x_axis(across), scale=_scale(points))
    y = alt.Y("mbps", type="quantitative", axis=y_axis("Goodput [Mbit/s]"), scale=alt.Scale(zero=True))
    colours = alt.Scale(domain=series, range=category_colours(len(series)))
    colour = alt.Color("series", type="nominal", scale=colours, legend=alt.Legend(title=None))
    base, bounded = alt.Chart(inline(points)), points.drop_nulls(["low", "high"])
    layers = [base.mark_line(strokeWidth=2).encode(x, y, colour)]
    if bounded.height:
        rule = alt.Chart(inline(bounded)).mark_rule(strokeWidth=1.5)
        layers.append(rule.encode(x, alt.Y("low", type="quantitative"), alt.Y2("high"), colour))
    layers.append(base.mark_point(size=45, filled=True, opacity=1).encode(x, y, colour, tooltip=_tips(across)))
    text = ChartText(title, f"{title}, mean and 95 % interval at each value: {'; '.join(series)}.")
    return layered_chart(layers, text, height=300, marks=points.height)


def _scale(points: pl.DataFrame) -> alt.Scale:
    """Return the scale of the swept values: logarithmic if they are far apart."""
    low, high = float(points["x"].to_numpy().min()), float(points["x"].to_numpy().max())
    if low <= 0 or high / low < _LOG_FROM:
        return alt.Scale(zero=True)
    return alt.Scale(type="log", domain=[low / _LOG_MARGIN, high * _LOG_MARGIN], nice=False)


def _tips(across: str) -> list[alt.Tooltip]:
    numbers = (("mbps", "Goodput [Mbit/s]"), ("low", "95 % interval from"), ("high", "to"))
    return [
        alt.Tooltip("series", type="nominal", title="Variant"),
        alt.Tooltip("x", type="quantitative", format=",.4~g", title=across),
        *(alt.Tooltip(name, type="quantitative", format=",.3f", title=text) for name, text in numbers),
    ]
