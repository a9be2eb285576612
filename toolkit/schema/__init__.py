"""The tables: every column with type, unit and meaning, declared here and nowhere else.

Ground floor: imports nothing of ours, and pyarrow only when a schema is built. The native code emits these very
columns (tests/toolkit/test_schema.py compares them), Parquet files carry unit and meaning in their metadata,
`hindflight explain` prints them. captured.py and results.py declare, arrow.py builds. Read docs/tables.md for how the
tables hang together.
"""

from hindflight.toolkit.schema.arrow import (
    TABLES,
    arrow_schema,
    conform,
    empty_table,
    has_former_values,
    table_from_rows,
    with_current_values,
)
from hindflight.toolkit.schema.captured import PHASES, SOURCES
from hindflight.toolkit.schema.model import SCHEMA_VERSION, Column, Table
from hindflight.toolkit.schema.results import (
    DAMAGE_METRICS,
    FINDING_SECTIONS,
    FINGERPRINT,
    INTERVAL_METRIC,
    OTHERS_AS_TCP_METRIC,
    leg_metric,
    run_subject,
)

__all__ = [
    "DAMAGE_METRICS",
    "FINDING_SECTIONS",
    "FINGERPRINT",
    "INTERVAL_METRIC",
    "OTHERS_AS_TCP_METRIC",
    "PHASES",
    "SCHEMA_VERSION",
    "SOURCES",
    "TABLES",
    "Column",
    "Table",
    "arrow_schema",
    "conform",
    "empty_table",
    "has_former_values",
    "leg_metric",
    "run_subject",
    "table_from_rows",
    "with_current_values",
]
