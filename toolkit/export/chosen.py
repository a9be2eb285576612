"""What an export takes of a workspace: one run, and of it some flows; with other addresses where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.schema import TABLES, empty_table

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.export.anonymize import Anonymizer
    from hindflight.toolkit.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows of run `run` (None: of all) that belong to `flows` (None: all of them)."""

    workspace: Workspace
    run: int | None
    flows: tuple[int, ...] | None
    anonymizer: Anonymizer | None

    def table(self, name: str) -> pa.Table:
        """Return the chosen rows of table `name`; a table without runs or flows is given whole."""
        return self._named(name, self.workspace.table(name, None, self._where(name)))

    def batches(self, name: str) -> Iterator[pa.Table]:
        """Yield the rows of `table`, a batch at a time; the first batch has none."""
        yield empty_table(name)
        for rows in self.workspace.batches(name, self._where(name)):
            yield self._named(name, rows)

    def has_rows(self, name: str) -> bool:
        """Whether any row of table `name` is chosen and not left out."""
        left_out = self.anonymizer is not None and self.anonymizer.leaves_out(name)
        return not left_out and self.workspace.count(name, self._where(name)) > 0

    def _where(self, name: str) -> Any:
        import pyarrow.compute as pc

        columns = {column.name for column in TABLES[name].columns}
        where = None
        for column, wanted in (("run_id", None if self.run is None else (self.run,)), ("flow_id", self.flows)):
            if wanted is not None and column in columns:
                condition = pc.field(column).isin(list(wanted))
                where = condition if where is None else where & condition
        return where

    def _named(self, name: str, rows: pa.Table) -> pa.Table:
        return rows if self.anonymizer is None else self.anonymizer.table(name, rows)
