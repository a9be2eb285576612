"""What an export takes of a workspace: one run, and of it some flows; with other addresses where that is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindflight.toolkit.schema import TABLES

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
        import pyarrow.compute as pc

        columns = {column.name for column in TABLES[name].columns}
        where = None
        for column, wanted in (("run_id", None if self.run is None else (self.run,)), ("flow_id", self.flows)):
            if wanted is not None and column in columns:
                condition = pc.field(column).isin(list(wanted))
                where = condition if where is None else where & condition
        rows = self.workspace.table(name, None, where)
        return rows if self.anonymizer is None else self.anonymizer.table(name, rows)
