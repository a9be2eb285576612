"""A flow that the engine ran over a link, as a capture at its sender, with datagrams on the same link."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.channels.extraction.cross_traffic import CrossTraffic
from hindflight.channels.extraction.extract import Context, Extraction, extract
from hindflight.replay.experiment.engine_inputs import engine_config, plan_comparison
from hindflight.replay.experiment.run import Configuration, run_configurations
from hindflight.replay.scenario.model import parse_scenario
from hindflight.toolkit.schema import table_from_rows

if TYPE_CHECKING:
    import pyarrow as pa

VIDEO = {"name": "video", "rate": "3 Mbit/s", "packet": "1000 B"}


def flown(link: dict[str, Any], **more: Any) -> dict[str, pa.Table]:
    """Tables of a flow that the engine ran for 30 s over a link of 8 Mbit/s, as of a capture at its sender."""
    data = {
        "name": "shared link",
        "duration": "30 s",
        "path": ["sender", "receiver"],
        "flow": {"receive_buffer": "4 MiB"},
        "links": [{"name": "up", "rate": "8 Mbit/s", "delay": "40 ms", "queue": "60 pkts", **link}],
        "compare": {"variants": ["cubic"], "seeds": 1},
        **more,
    }
    of = parse_scenario(data, "test.toml", ("cubic",), Path())
    job = plan_comparison(of, ("cubic",))[0]
    run = run_configurations([Configuration(engine_config(of, job, {}), 1, True)])
    names = ("segments", "flows", "events")
    return {name: table_from_rows(name, [{**row, "run_id": 0} for row in run[name].to_pylist()]) for name in names}


def extracted(tables: dict[str, pa.Table], cross_traffic: CrossTraffic | None) -> Extraction:
    return extract(tables["segments"], tables["flows"], tables["events"], 1, Context(cross_traffic))


def telemetry() -> CrossTraffic:
    """The datagrams of `VIDEO` as in a capture at the sender: 1000 octets every 8000 bits at 3 Mbit/s."""
    count = 11_250
    t_ns = (np.arange(count) * (8e12 / 3e6)).astype(np.int64)
    return CrossTraffic(t_ns, np.full(count, 1000), {"udp": count})
