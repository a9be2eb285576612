"""The native core's surface. Every name here is in the extension, and the other way round (tests/toolkit)."""

from os import PathLike
from typing import Any, final

__all__ = ["CaptureReader", "Columns"]

@final
class CaptureReader:
    """Reads one capture file: segments in batches, all other tables as far as they are certain.

    ValueError with a sentence and a hint where the file is no capture, OSError where the system refuses.
    """

    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        first_flow_id: int,
        input_id: int,
        from_ns: int | None = None,
        to_ns: int | None = None,
    ) -> CaptureReader: ...
    def read_batch(self, max_rows: int) -> Columns | None: ...
    def flows(self) -> Columns: ...
    def events(self) -> Columns: ...
    def instruments(self) -> Columns: ...
    def issues(self) -> Columns: ...
    def summary(self) -> dict[str, Any]: ...
    def progress(self) -> tuple[int, int]: ...

@final
class Columns:
    """A batch of named columns behind the Arrow C data interface: `pyarrow.table(columns)` takes it."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...
