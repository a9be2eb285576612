"""One flow of full segments over one link, for the pictures that compare the engine with expected values."""

from __future__ import annotations

from typing import Any

from hindflight.replay.experiment.run import Configuration, run_configurations

SMSS_BYTES = 1000
HEADER_BYTES = 40
PACKET_BITS = 8 * (SMSS_BYTES + HEADER_BYTES)

Row = tuple[str, float, float]
"""Series, x and y of a point in a picture."""


def run_flow(seconds: float, flow: dict[str, Any], forward: dict[str, Any], reverse: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of one run: `flow`, `forward` and `reverse` as the engine's configuration has them."""
    config = {
        "duration_ns": round(seconds * 1e9),
        "path": {
            "nodes": ["sender", "receiver"],
            "links": [{"name": "link", "forward": forward, "reverse": reverse}],
        },
        "flows": [
            {
                "name": "flow",
                **flow,
                "stack": {
                    "smss_bytes": SMSS_BYTES,
                    "header_bytes": HEADER_BYTES,
                    "receive_buffer_bytes": 1 << 22,
                    **flow.get("stack", {}),
                },
            }
        ],
    }
    return run_configurations([Configuration(config, 1, recorded=True)])
