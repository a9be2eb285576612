"""The native core's surface. Every name here is in the extension, and the other way round (tests/toolkit)."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, final

__all__ = ["CaptureReader", "Columns", "replay", "variants"]

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

def replay(
    jobs: Sequence[tuple[str, int, int, bool]], *, threads: int, samples: int | None = None
) -> dict[str, list[Columns]]:
    """Run jobs of (configuration as JSON, seed, run_id, recorded) over `threads` threads.

    Returns batches of the tables `runs` (a row per job and flow, only the columns that the engine knows), `segments`,
    `flows`, `events` and `instruments` (of recorded jobs), in the order of the jobs whatever the number of threads.
    With `samples`, recorded jobs give `instruments` alone: of each of so many even intervals the first state of every
    leg's sender (where nothing changes for a while, the one that holds), and its last, so that memory does not grow
    with the length of a run.
    Equal seeds give equal bytes. The configuration is `Config` of replay/engine/src/config; ValueError names the key
    path of the first value that makes no sense, before anything runs. KeyboardInterrupt stops all threads.
    """

def variants() -> list[tuple[str, str, str, str, int, list[tuple[str, str, str, str, str, str]]]]:
    """List the TCP variants: name, family, one line, source, its year, parameters.

    A parameter is its name, default, what is allowed, unit, source and meaning, all as text.
    """
