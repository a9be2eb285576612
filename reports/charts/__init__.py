"""One function per chart: tables of toolkit/schema in, Altair chart out.

Tables are pyarrow Tables, Polars DataFrames or LazyFrames by name; `View` selects the flow and the run. A function
raises ReportError, with the reason in one sentence, if its tables have no data for the chart. Charts have no theme. In
a notebook: `alt.theme.register("hindflight", enable=True)(lambda: {"config": vega_config("light")})`.
"""

from __future__ import annotations

from hindflight.reports.charts.application_delay import (
    captured_application_delay,
    has_application_delay,
    what_if_application_delay,
)
from hindflight.reports.charts.comparison import goodput_and_delay, what_if_cwnd, what_if_difference, what_if_goodput
from hindflight.reports.charts.distributions import what_if_loss_bursts, what_if_rtt, what_if_throughput
from hindflight.reports.charts.flight_log import (
    TRACK_COLOURS,
    flight_units,
    flight_values,
    has_track,
    track,
)
from hindflight.reports.charts.link_state import link_state, packet_delay, queue_occupancy
from hindflight.reports.charts.losses import losses
from hindflight.reports.charts.path import rtt, throughput
from hindflight.reports.charts.proxies import what_if_proxy
from hindflight.reports.charts.self_check import self_check_cwnd, self_check_sequence
from hindflight.reports.charts.sequence import stevens, time_sequence
from hindflight.reports.charts.sharing import what_if_sharing
from hindflight.reports.charts.sweeps import goodput_over_cache, goodput_over_loss, has_cache_sweep
from hindflight.reports.charts.what_if_queue import what_if_queue
from hindflight.reports.charts.window import cwnd
from hindflight.reports.frames import Tables, View
from hindflight.reports.style import vega_config

__all__ = [
    "TRACK_COLOURS",
    "Tables",
    "View",
    "captured_application_delay",
    "cwnd",
    "flight_units",
    "flight_values",
    "goodput_and_delay",
    "goodput_over_cache",
    "goodput_over_loss",
    "has_application_delay",
    "has_cache_sweep",
    "has_track",
    "link_state",
    "losses",
    "packet_delay",
    "queue_occupancy",
    "rtt",
    "self_check_cwnd",
    "self_check_sequence",
    "stevens",
    "throughput",
    "time_sequence",
    "track",
    "vega_config",
    "what_if_application_delay",
    "what_if_cwnd",
    "what_if_difference",
    "what_if_goodput",
    "what_if_loss_bursts",
    "what_if_proxy",
    "what_if_queue",
    "what_if_rtt",
    "what_if_sharing",
    "what_if_throughput",
]
