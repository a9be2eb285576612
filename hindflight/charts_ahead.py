"""The charts of a what-if report, drawn on a separate thread while the engine makes the last runs.

The engine needs Python only between batches of runs. Without this the charts, which take one processor for seconds,
would be drawn when it is done and all others have nothing to do. What it does not draw the report draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.reports.sections import Figure
    from hindflight.toolkit.workspace import Workspace


class Charts:
    """The charts of the report on a workspace. Leaving the context ends the drawing."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._thread: Thread | None = None
        self._unwanted = Event()
        self._figures: Mapping[str, Figure] = {}

    def __enter__(self) -> Charts:
        return self

    def __exit__(self, *_: object) -> None:
        self._unwanted.set()

    def prepare(self) -> None:
        """Import what the report and the intervals need while Python has nothing else to do, as the engine runs."""
        from hindflight.imports import import_meanwhile
        from hindflight.reports.bundle import prepare

        prepare()
        import_meanwhile("hindflight.reports.document")
        import_meanwhile("scipy.special")

    def draw(self, replayed: Mapping[str, pa.Table]) -> None:
        """Begin to draw, and return at once. `replayed` are the tables of a replay that is not in the workspace yet; of
        its `findings` those that no chart needs may be missing."""
        self._thread = Thread(target=self._draw, args=(replayed,), name="charts")
        self._thread.start()

    def drawn(self) -> Mapping[str, Figure]:
        """Wait for the charts and return them by key; none where one could not be drawn."""
        if self._thread is not None:
            self._thread.join()
        return self._figures

    def _draw(self, replayed: Mapping[str, pa.Table]) -> None:
        from hindflight.reports.document import figures_ahead
        from hindflight.toolkit.text import name_to_text

        with suppress(Exception):  # The report meets the error again, and reports it.
            tables = _WhileWanted(_together(self._workspace.without_replay(), replayed), self._unwanted)
            self._figures = figures_ahead(tables, name_to_text(self._workspace.path))


def _together(kept: Workspace, replayed: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Return the tables as they will be in the workspace: what it keeps, then the rows of the replay."""
    import polars as pl

    from hindflight.toolkit.schema import TABLES

    tables = {name: kept.scan(name) for name in TABLES}
    for name, rows in replayed.items():
        frame = pl.DataFrame(pl.from_arrow(rows, rechunk=False))  # A copy of all rows would take longer than a chart.
        tables[name] = pl.concat([tables[name], frame.lazy()])
    return tables


class _WhileWanted(Mapping[str, Any]):
    """Tables that cannot be read any more once they are `unwanted`: this ends a drawing, which reads often."""

    def __init__(self, tables: Mapping[str, Any], unwanted: Event) -> None:
        self._tables = tables
        self._unwanted = unwanted

    def __getitem__(self, name: str) -> Any:
        if self._unwanted.is_set():
            raise RuntimeError("the drawing was ended")
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)
