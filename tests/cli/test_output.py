"""What is printed, for programs and for the eye."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from hindflight.cli.layout import print_fitting
from hindflight.cli.output import SHOWN_ROWS, Row, echo, print_csv, print_json, print_table, say
from hindflight.toolkit.text import endpoint

ROWS: list[Row] = [{"name": "a", "n": 1, "list": [1, 2]}, {"name": "[bold]x", "n": None, "list": []}]


def test_csv_leaves_null_empty(capsys: pytest.CaptureFixture[str]) -> None:
    print_csv(["n", "name", "list"], ROWS)
    assert capsys.readouterr().out == 'n,name,list\n1,a,"[1, 2]"\n,[bold]x,[]\n'


def test_json_is_one_strict_document(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"x": "é", "n": None})
    assert json.loads(capsys.readouterr().out) == {"x": "é", "n": None}
    with pytest.raises(ValueError, match="Out of range"):
        print_json({"x": float("nan")})


def test_a_table_takes_cells_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "n"], ROWS)
    shown = capsys.readouterr().out
    assert "[bold]x" in shown
    assert [line.split() for line in shown.splitlines() if "a " in line] == [["a", "1"]]


def test_a_table_without_rows_shows_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "n"], [])
    assert capsys.readouterr().out.split()[:2] == ["name", "n"]


def test_columns_too_wide_for_the_terminal_become_a_list(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    names = [f"column_{number}" for number in range(20)]
    print_table(names, [dict.fromkeys(names, 7)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "row 1"
    assert lines[1].split() == ["column_0", "7"]
    assert len(lines) == 21


def test_long_tables_say_how_much_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["n"], [{"n": number} for number in range(SHOWN_ROWS + 5)])
    shown = capsys.readouterr()
    assert str(SHOWN_ROWS - 1) in shown.out
    assert str(SHOWN_ROWS + 4) not in shown.out
    assert f"the first {SHOWN_ROWS} of {SHOWN_ROWS + 5} rows" in shown.err


def test_no_column_of_a_wide_table_is_squeezed(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"a_long_name_{number}" for number in range(60)]
    print_table(names, [dict.fromkeys(names, "value")] * 3)
    head = capsys.readouterr().out.splitlines()[1]
    assert head.split() == names


def test_an_ipv6_end_has_brackets() -> None:
    assert endpoint("192.0.2.1", 80) == "192.0.2.1:80"
    assert endpoint("2001:db8::1", 21) == "[2001:db8::1]:21"


EVIL = "[red]x[/red]\x1b[31m\x9b1m:smile:\u202e\n" + "\udce9"
SHOWN = r"[red]x[/red]\x1b[31m\x9b1m:smile:\u202e\n\xe9"


def test_nothing_that_a_terminal_acts_on_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([EVIL], [{EVIL: EVIL}], title=EVIL)
    shown = capsys.readouterr().out
    assert shown.count(SHOWN) == 3
    echo(EVIL)
    say(EVIL)
    both = capsys.readouterr()
    assert (both.out, both.err) == (f"{SHOWN}\n", f"{SHOWN}\n")
    print_json({EVIL: EVIL})
    document = capsys.readouterr().out
    assert json.loads(document) == {EVIL: EVIL}
    for character in "\x1b\x9b\u202e\udce9":
        assert character not in shown + document


def test_a_list_of_rows_prints_no_control_character(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "20")
    print_table([EVIL], [{EVIL: EVIL}])
    assert capsys.readouterr().out.splitlines()[1] == f"  {SHOWN}  {SHOWN}"


def test_csv_has_no_formula_and_keeps_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    print_csv(["=a", "n", "t"], [{"=a": "=1+1", "n": -1.5, "t": "\x1b[31m"}, {"=a": "-0.25", "n": -3, "t": "a\nb"}])
    assert capsys.readouterr().out == "'=a,n,t\n'=1+1,-1.5,\\x1b[31m\n-0.25,-3,\"a\nb\"\n"


def test_only_the_modules_for_output_print() -> None:
    folder = Path(__file__).resolve().parents[2] / "hindflight" / "cli"
    for path in folder.glob("*.py"):
        if path.name not in ("output.py", "errors.py", "stop.py", "app.py"):  # app prints its own help
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            assert not [c.lineno for c in calls if ast.unparse(c.func) in ("print", "typer.echo", "sys.stdout.write")]


@pytest.mark.parametrize("wide", [False, True])
def test_long_addresses_leave_room_for_other_columns(
    wide: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ends = {"sender": endpoint("2001:db8:ffff:ffff:ffff:ffff:ffff:1", 65535), "receiver": endpoint("192.0.2.255", 5001)}
    row: Row = {"flow": 1, **ends, "seconds": "40.000", "payload bytes": 123456789}
    print_fitting(list(row), [row], wide)
    shown = capsys.readouterr().out
    assert "123456789" in shown
    assert "192.0.2.255:5001" in shown
    assert (ends["sender"] in shown) == wide
    assert ("[2001:…" in shown and "ffff:1]:65535" in shown) == (not wide)
