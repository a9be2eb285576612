"""How a capture says that it was rebuilt from one at the receiver: by the comment of its pcapng section.

Ingesting keeps that in the manifest, per input, and `read_flow` in the flow.
"""

from __future__ import annotations

from pathlib import Path

WHAT = (
    "packets of a capture at the receiver as its sender sent and received them, rebuilt from timestamps, headers alone"
)
"""The comment of the section."""
NOTE = "rebuilt from a capture at the receiver"
"""What the note of such an input says to the user."""
HEAD_BYTES = 1024
"""A section header with its comment is within these octets."""


def is_rebuilt(path: Path) -> bool:
    """Whether the file at `path` says that it was rebuilt. OSError: it cannot be read."""
    with path.open("rb") as file:
        return WHAT.encode() in file.read(HEAD_BYTES)


def described(name: str) -> str:
    """Say how exact the capture called `name` is, which was rebuilt before."""
    return (
        f"{name} was rebuilt from a capture at the receiver: times are good to about a tick of the sender's clock, "
        "those of packets that were lost are inferred, and ACKs that were lost count as arrived."
    )
