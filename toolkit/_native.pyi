"""The native core's surface. Every name here is in the extension, and the other way round (tests/toolkit)."""

from typing import Any, final

__all__ = ["Columns"]

@final
class Columns:
    """A batch of named columns behind the Arrow C data interface: `pyarrow.table(columns)` takes it."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...
