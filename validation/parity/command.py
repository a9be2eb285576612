"""`python -m validation parity CAPTURE|DIR...`: the profiles compared with the installed tcptrace and tshark."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.output import AsJson, echo, print_json, progress_on_stderr, say
from hindflight.toolkit.errors import HindflightError
from validation.parity import with_tcptrace, with_tshark
from validation.parity.compare import Outcome, captures
from validation.parity.page import Compare, share, tables

PEERS: dict[str, tuple[Compare, dict[str, str]]] = {
    "tcptrace": (with_tcptrace.compare, with_tcptrace.KINDS),
    "tshark": (with_tshark.compare, with_tshark.KINDS),
}

PAGE = """# Parity with tcptrace and Wireshark

`hindflight flows --profile tcptrace` gives the fields of `tcptrace -n -l -r -W` per connection, and `hindflight
segments --profile wireshark` the fields of `tcp.analysis`, `tcp.stream`, completeness and window scale factor per
segment. A profile counts as its peer counts: a super-segment is one packet, copies of a packet count, and where our own
tables have no value it has the peer's number. The peers are tcptrace 6.6.7 and tshark 4.0 with its default preferences.

This page is what `python -m validation parity CAPTURES... --write docs/parity.md` writes, here of public captures and
recordings of the project: it compares every value with the installed programs. A difference belongs to a kind by a rule
that holds for all captures; none is excused by the name of a file.

Left out on purpose: payload (`tcptrace -e`), since none is kept; UDP (`-u`); the Fast Open flags of Wireshark, and what
follows from preferences other than the default ones. `tcptrace` prints the name of the file, too.
Several files are merged in order of time here; `tcptrace` reads them one after the other.

"""


def parity(
    paths: Annotated[list[Path], typer.Argument(help="Captures, or folders of them.")],
    peers: Annotated[list[str] | None, typer.Option("--peer", help="tcptrace or tshark [default: both].")] = None,
    write: Annotated[Path | None, typer.Option("--write", help="Also write the tables as a Markdown page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare all fields of both profiles with the programs that they stand for. A difference is not an error."""
    results: dict[str, list[Outcome]] = {}
    for peer in peers or list(PEERS):
        if peer not in PEERS:
            raise HindflightError(f"--peer {peer} is not known", f"there are {', '.join(PEERS)}")
        if shutil.which(peer) is None:
            say(f"{peer} is not installed, so nothing is compared with it; on Debian: apt-get install {peer}")
            continue
        results[peer] = _compare(peer, captures(paths))
    sections = "".join(tables(peer, outcomes, PEERS[peer][1]) + "\n" for peer, outcomes in results.items())
    if write is not None:
        write.write_text(PAGE + sections.rstrip() + "\n", encoding="utf-8")
    if as_json:
        print_json({peer: _document(outcomes) for peer, outcomes in results.items()})
    else:
        echo(*sections.splitlines())


def _compare(peer: str, found: list[Path]) -> list[Outcome]:
    outcomes = []
    with progress_on_stderr() as report:
        for done, path in enumerate(found, 1):
            try:
                outcomes.append(PEERS[peer][0](path))
            except HindflightError as error:
                say(f"{path.name}: {error.message}")
            report(Path(peer), done / len(found))
    return outcomes


def _document(outcomes: list[Outcome]) -> dict[str, object]:
    return {
        "equal_share": share(outcomes),
        "compared": sum(one.compared for one in outcomes),
        "different": sum(len(one.differences) for one in outcomes),
        "unexplained": sum(len(one.unexplained) for one in outcomes),
        "captures": len(outcomes),
    }
