"""Long columns go to the engine as Arrow arrays: the text stays small, and the runs are those of lists."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hindflight.replay import _native
from hindflight.replay.experiment.engine_documents import EngineDocuments
from hindflight.replay.experiment.run import Configuration, run_configurations

MS = 1_000_000
TRACE = {"kind": "trace", "mode": "replayed", "known_pkts": 3000, "block_pkts": 100}
PLAIN: dict[str, Any] = {
    "duration_ns": 20_000 * MS,
    "path": {
        "nodes": ["a", "b"],
        "links": [
            {
                "name": "ab",
                "forward": {
                    "rate_trace": {"starts_ns": [0, 500 * MS], "rates_bps": [1e6, 2e6], "end_ns": 1000 * MS},
                    "delay_ns": 20 * MS,
                    "jitter": {"kind": "recorded", "delays_ns": [MS, 2 * MS, 3 * MS] * 50},
                    "loss": {**TRACE, "positions": list(range(40, 900, 37)), "late": [[7, 9 * MS], [8, 5 * MS]]},
                    "schedule": [{"at_ns": 3000 * MS, "delay_ns": 30 * MS}, {"at_ns": 6000 * MS, "outage": True},
                                 {"at_ns": 6500 * MS, "outage": False}],
                },
                "reverse": {
                    "delay_ns": 20 * MS,
                    "loss_applies_to": "all",
                    "loss": {
                        "kind": "arq", "retries": 1, "try_ns": 10 * MS, "in_order": True,
                        "over": {
                            "kind": "timeline",
                            "spans": [{"start_ns": 0, "per": 0.02}, {"start_ns": MS, "ber": 1e-6}],
                        },
                    },
                },
            }
        ],
    },
    "flows": [
        {"name": "flow", "variant": "cubic"},
        {"name": "app", "variant": "reno",
         "application": {"kind": "writes", "at_ns": [0, MS, 900 * MS], "bytes": [5000, 1, 70000]}},
    ],
}  # fmt: skip


def _late(config: dict[str, Any]) -> dict[str, Any]:
    """Rows of `late` as the type of the array has them."""
    text = json.loads(json.dumps(config))
    loss = text["path"]["links"][0]["forward"]["loss"]
    loss["late"] = [{"position": position, "added_ns": added} for position, added in loss["late"]]
    return dict(text)


def test_runs_are_those_of_lists() -> None:
    as_lists = _native.replay([(json.dumps({"config": PLAIN}), 3, 1, True)], threads=1)
    as_arrays = run_configurations([Configuration(_late(PLAIN), 3, recorded=True)])
    runs = pa.concat_tables([pa.table(part) for part in as_lists["runs"]])
    assert runs.equals(as_arrays["runs"])
    segments = pa.concat_tables([pa.table(part) for part in as_lists["segments"]])
    assert segments["t_ns"].equals(as_arrays["segments"]["t_ns"])
    assert sum(runs["channel_losses"].to_pylist()) > 10


def test_every_list_is_an_array_and_none_is_passed_twice() -> None:
    documents = EngineDocuments()
    first = documents.text(_late(PLAIN))
    columns = ("positions", "late", "spans", "schedule", "starts_ns", "rates_bps", "delays_ns", "at_ns", "bytes")
    assert {path.rpartition(".")[2] for path in json.loads(first)["arrays"]} == set(columns)
    million = pa.array(range(0, 2_000_000, 2), pa.uint64())
    loss = {**TRACE, "positions": million, "known_pkts": 2_000_000}
    config = {**PLAIN, "path": {**PLAIN["path"], "links": [{"name": "ab", "forward": {"delay_ns": 1, "loss": loss}}]}}
    texts = {documents.text(config) for _ in range(3)}
    assert len(texts) == 1
    assert len(texts.pop()) < 2000
    assert sum(array is million for array in documents.arrays) == 1


@pytest.mark.parametrize(
    ("arrays", "array", "problem"),
    [
        ({"path.links.0.forward.loss.positions": 1}, [3], "there is no array 1"),
        ({"path.links.0.forward.queue": 0}, [3], "no list of a configuration"),
        ({"path.links.0.forward.loss.positions": 0}, ["x"], "an array of Utf8, UInt64 needed"),
        ({"path.links.0.forward.loss.positions": 0}, [3, None], "nulls among its values"),
    ],
)
def test_an_array_that_does_not_fit_is_refused_by_its_path(
    arrays: dict[str, int], array: list[Any], problem: str
) -> None:
    column = pa.array(array) if isinstance(array[0], str) else pa.array(array, pa.uint64())
    text = json.dumps({"config": PLAIN, "arrays": arrays})
    with pytest.raises(ValueError, match=problem):
        _native.replay([(text, 1, 1, False)], threads=1, arrays=[column])
