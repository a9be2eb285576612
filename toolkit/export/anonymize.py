"""Replaces addresses by others, prefix-preservingly: hosts of one network stay in one network.

Crypto-PAn (Xu, Fan, Ammar, Moon 2002) with a key of 32 octets; with one key an address is the same in every export.
What else could name a host is removed: unknown TCP options, names of files, texts that are not addresses.
"""

from __future__ import annotations

import secrets
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.files import plain_os_errors

if TYPE_CHECKING:
    import pyarrow as pa

KEY_BYTES = 32

_PROSE = ("findings", "claims")
"""Tables of sentences, which may name files and hosts: left out."""

_ADDRESSES = {"flows": ("a_addr", "b_addr"), "others": ("src_addr", "dst_addr")}
_TEXTS = {"variables": ("text",), "issues": ("text",), "segments": ("options_other",)}
"""Columns that may name a host; only addresses as such are kept, mapped. A TCP option can hold one (RFC 8684 §3.4)."""


class Anonymizer:
    """Maps addresses with one key."""

    def __init__(self, key: bytes) -> None:
        from yacryptopan import CryptoPAn

        self._map = cache(CryptoPAn(key).anonymize)

    def address(self, text: str) -> str:
        """Return the address that stands for `text`, an IPv4 or IPv6 address."""
        return str(ip_address(self._map(text)))

    def text(self, text: Any) -> str | None:
        """Return the mapped address if `text` is an address, else None."""
        try:
            return self.address(str(ip_address(text)))
        except ValueError:
            return None

    def leaves_out(self, name: str) -> bool:
        """Whether no row of table `name` is given."""
        return name in _PROSE

    def table(self, name: str, rows: pa.Table) -> pa.Table:
        """Return the rows of table `name` with other addresses, and without texts that could name a host."""
        if self.leaves_out(name):
            return rows.slice(0, 0)
        for column in _ADDRESSES.get(name, ()):
            rows = _replaced(rows, column, self.address)
        for column in _TEXTS.get(name, ()):
            rows = _replaced(rows, column, self.text if name == "variables" else _removed(name))
        return rows


def _removed(name: str) -> Any:
    """What stands for a text that is removed: nothing where null may be."""
    return lambda _value: "removed" if name == "issues" else None


def _replaced(rows: pa.Table, name: str, change: Any) -> pa.Table:
    """Return `rows` with each distinct value of column `name` changed."""
    import pyarrow as pa

    if name not in rows.column_names:
        return rows
    values = rows[name].combine_chunks().dictionary_encode()
    known = values.dictionary.to_pylist()
    changed = pa.array([change(value) for value in known], rows[name].type)
    return rows.set_column(rows.column_names.index(name), rows.field(name), changed.take(values.indices))


def read_or_make_key(path: Path) -> tuple[bytes, bool]:
    """Return the key in the file `path` (64 hexadecimal digits), and whether it was made now because there was none.

    HindflightError: the file holds something else.
    """
    with plain_os_errors(f"using the key {path}"):
        if not path.exists():
            key = secrets.token_bytes(KEY_BYTES)
            path.touch(mode=0o600, exist_ok=False)
            path.write_text(f"{key.hex()}\n")
            return key, True
        text = path.read_bytes()[: 4 * KEY_BYTES]
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise HindflightError(
            f"{path} is not a key of {KEY_BYTES} octets",
            "a key is 64 hexadecimal digits; name a new file and it is made",
        )
    return key, False
