"""The options that name a time, and the span that they give in a capture; toolkit/times.py has what times look like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hindflight.toolkit.times import span

From = Annotated[str, typer.Option("--from", metavar="TIME", help="Ignore everything earlier: seconds, or UTC.")]
To = Annotated[str, typer.Option("--to", metavar="TIME", help="Ignore everything later: seconds, or UTC.")]
Utc = Annotated[bool, typer.Option("--utc", help="Show UTC times instead of seconds from the start.")]


def capture_span(path: Path, from_text: str, to_text: str) -> tuple[int | None, int | None]:
    """Return the span between --from and --to in a capture, where seconds count from its first TCP segment."""
    from hindflight.toolkit.capture import CaptureStream

    if not (from_text or to_text) or path.is_dir():
        limits = span(from_text, to_text, 0)
    else:
        limits = span(from_text, to_text, CaptureStream(path).first_time_ns() or 0)
    return limits.from_ns, limits.to_ns
