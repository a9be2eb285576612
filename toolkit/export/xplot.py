"""The drawing language of xplot: commands with points in seconds and numbers, after a head of five lines.

Does not depend on tables. Times are ns and are written in microseconds, cut as tcptrace cuts them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

_US = 1000
_US_PER_S = 1_000_000


def seconds(t_us: int) -> str:
    """Return a time in microseconds as seconds with six places."""
    whole, rest = divmod(abs(t_us), _US_PER_S)
    return f"{'-' if t_us < 0 else ''}{whole}.{rest:06d}"


def microseconds(t_ns: int) -> int:
    """Return a time in ns in whole microseconds, cut."""
    return t_ns // _US


@dataclass(slots=True)
class Plot:
    """One graph: its head, and the commands so far. `axes` are the kinds of both axes in xplot's words."""

    axes: str
    title: str
    xlabel: str
    ylabel: str
    commands: list[str] = field(default_factory=list)

    def color(self, name: str) -> None:
        """Draw what follows in this colour."""
        self.commands.append(name)

    def mark(self, kind: str, t_us: int, y: int, color: str = "") -> None:
        """Draw a dot, diamond, box, arrow (uarrow, darrow) or tick (utick, dtick, htick), in `color` if given."""
        self.commands.append(f"{kind} {seconds(t_us)} {y}{f' {color}' if color else ''}")

    def line(self, t_us: int, y: int, to_us: int, to_y: int) -> None:
        """Draw a line between two points."""
        self.commands.append(f"line {seconds(t_us)} {y} {seconds(to_us)} {to_y}")

    def text(self, where: str, t_us: int, y: int, text: str, color: str = "") -> None:
        """Write `text` at a point: `where` is a (above), b (below), c (centre), l (left) or r (right)."""
        self.commands.append(f"{where}text {seconds(t_us)} {y}{f' {color}' if color else ''}\n{text}")

    def write(self, path: Path) -> None:
        """Write the graph to `path`. OSError: the system refuses."""
        head = f"{self.axes}\ntitle\n{self.title}\nxlabel\n{self.xlabel}\nylabel\n{self.ylabel}\n"
        with path.open("w", encoding="utf-8") as file:
            file.write(head)
            file.writelines(f"{command}\n" for command in self.commands)
            file.write("go\n")


@dataclass(slots=True)
class Line:
    """A line of one colour through points, each with a dot; its label is where it begins."""

    plot: Plot
    color: str
    label: str
    last: tuple[int, int] | None = None
    labelled: bool = False

    def extend(self, t_us: int, y: int) -> None:
        """Draw the line on to a point."""
        if not self.labelled and self.last is not None and y:
            middle = (self.last[0] + t_us) // 2, (self.last[1] + y) // 2
            self.plot.text("l", *middle, self.label, self.color)
            self.labelled = True
        self.plot.color(self.color)
        self.plot.mark("dot", t_us, y)
        if self.last is not None:
            self.plot.line(t_us, y, *self.last)
        self.last = (t_us, y)
