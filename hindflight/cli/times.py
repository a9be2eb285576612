"""The options that name a time, and the span that they give in a capture; toolkit/times.py has what times look like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.times import span

From = Annotated[str, typer.Option("--from", metavar="TIME", help="Ignore everything earlier: seconds, or UTC.")]
To = Annotated[str, typer.Option("--to", metavar="TIME", help="Ignore this time and all later: seconds, or UTC.")]
Utc = Annotated[bool, typer.Option("--utc", help="Show UTC times instead of seconds from the start.")]


def capture_span(
    paths: Path | Sequence[Path], from_text: str, to_text: str, outer: bool = False
) -> tuple[int | None, int | None]:
    """Return the span between --from and --to in a capture, where seconds count from its first TCP segment.

    With `outer`, that is the first one outside of tunnels.

    HindflightError: seconds are given for a pipe, which cannot be read twice.
    """
    from hindflight.toolkit.capture import CaptureStream, is_stream

    files = [paths] if isinstance(paths, Path) else list(paths)
    relative = any(text and _is_number(text) for text in (from_text, to_text))
    if relative and any(is_stream(path) for path in files):
        raise HindflightError(
            "seconds count from the first segment, and a pipe cannot be read twice",
            "give --from and --to in UTC, or save the pipe to a file",
        )
    if not relative or files[0].is_dir():
        limits = span(from_text, to_text, 0)
    else:
        # Each file of a merged capture has an input_id; nothing is written here.
        stream = CaptureStream(files, input_id=[0] * len(files), outer=outer)
        limits = span(from_text, to_text, stream.first_time_ns() or 0)
    return limits.from_ns, limits.to_ns


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
