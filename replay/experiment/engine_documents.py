"""Engine configurations as the native core reads them: a small JSON text, with long columns as Arrow arrays.

The text names each array by its index. Does not depend on what the columns mean; `hindflight/native/src/arrays.rs` puts
them in place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

SCALARS = frozenset((str, int, float, bool, type(None)))
"""Types of values that need no look inside; a thousand flows have thousands of them."""


@cache
def column_types() -> dict[str, pa.DataType]:
    """Return the keys of a configuration whose lists go to the engine as arrays, with the type of the array."""
    import pyarrow as pa

    number, real, flag = pa.uint64(), pa.float64(), pa.bool_()
    change = {"at_ns": number, "rate_bps": real, "delay_ns": number, "outage": flag, "hold": flag, "overlap_ns": number}
    return {
        "positions": number,
        "late": pa.struct({"position": number, "added_ns": number}),
        "spans": pa.struct({"start_ns": number, "per": real, "ber": real}),
        "schedule": pa.struct(change),
        "starts_ns": number,
        "rates_bps": real,
        "delays_ns": number,
        "at_ns": number,
        "bytes": pa.uint32(),
    }


class EngineDocuments:
    """Collects the arrays of several configurations; a list or array that several of them hold is passed once."""

    def __init__(self) -> None:
        self.arrays: list[pa.Array] = []
        self._seen: dict[int, tuple[int, object]] = {}

    def text(self, config: Mapping[str, Any]) -> str:
        """Return the text of `config`; its arrays are in `arrays` from now on."""
        named: dict[str, int] = {}
        return json.dumps({"config": self._without_columns(config, "", named), "arrays": named})

    def _without_columns(self, value: Any, path: str, named: dict[str, int]) -> Any:
        if isinstance(value, Mapping):
            return {
                key: each if type(each) in SCALARS else self._of_key(key, each, f"{path}.{key}".lstrip("."), named)
                for key, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._without_columns(each, f"{path}.{i}", named) for i, each in enumerate(value)]
        return value

    def _of_key(self, key: str, value: Any, path: str, named: dict[str, int]) -> Any:
        wanted = column_types().get(key)
        if wanted is None or not (isinstance(value, list | tuple) or hasattr(value, "__arrow_c_array__")):
            return self._without_columns(value, path, named)
        if len(value):
            named[path] = self._index(value, wanted)
        return []

    def _index(self, value: Any, wanted: pa.DataType) -> int:
        """Return the index of `value` among the arrays; it is kept, so that its identity stays its own."""
        import pyarrow as pa

        if id(value) not in self._seen:
            self._seen[id(value)] = len(self.arrays), value
            self.arrays.append(value if isinstance(value, pa.Array) else pa.array(value, wanted))
        return self._seen[id(value)][0]
