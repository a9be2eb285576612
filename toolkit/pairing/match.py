"""Which packet of one capture is which of the other: equal headers, and among equal ones the order.

Middle boxes may rewrite addresses, ports, IP IDs and timestamps; what is compared is the most that still matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from hindflight.toolkit.pairing.packets import Packets

    Ints = npt.NDArray[np.int64]

_HEADER = ("seq", "ack", "payload_bytes", "flags")
_FIELDS = (
    (*_HEADER, "ts_val", "ts_ecr", "ip_id"),
    (*_HEADER, "ts_val", "ts_ecr"),
    (*_HEADER, "ip_id"),
    _HEADER,
)
"""Fields to compare, the most telling first."""

_AS_GOOD = 0.98
"""Share of the best match that a more telling set of fields must reach to be taken."""


def match(sent: Packets, seen: Packets) -> tuple[Ints, Ints]:
    """Return rows of `sent` and the rows of `seen` that are the same packets, in the order of `sent`."""
    max_share = _share(sent.key(_HEADER), seen.key(_HEADER))  # Fewer fields never match fewer packets.
    for fields in _FIELDS:
        mine, other = sent.key(fields), seen.key(fields)
        if _share(mine, other) >= _AS_GOOD * max_share:
            break
    rows, others = _unique_pairs(mine, other)
    more = _repeated_pairs(mine, other, sent.t_ns, seen.t_ns, rows, others)
    rows, others = np.concatenate((rows, more[0])), np.concatenate((others, more[1]))
    order = np.argsort(rows, kind="stable")
    return rows[order], others[order]


def _share(mine: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> float:
    """The share of `mine` that is among `other`."""
    return float(_among(mine, np.sort(other)).mean()) if len(mine) and len(other) else 0.0


def _among(keys: npt.NDArray[np.uint64], ordered: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Whether each of `keys` is in `ordered`: numpy's own way through a hash table takes ten times as long."""
    if not len(ordered):
        return np.zeros(len(keys), bool)
    places = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.asarray(ordered[places] == keys)


def _unique_pairs(mine: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """Rows of the keys that each side has once."""
    sides = []
    for keys in (mine, other):
        known, first, count = np.unique(keys, return_index=True, return_counts=True)
        sides.append((known[count == 1], first[count == 1]))
    (known, rows), (known_other, rows_other) = sides
    _, at, at_other = np.intersect1d(known, known_other, assume_unique=True, return_indices=True)
    return rows[at], rows_other[at_other]


def _repeated_pairs(
    mine: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64], t_ns: Ints, other_t_ns: Ints, rows: Ints, others: Ints
) -> tuple[Ints, Ints]:
    """Rows of the keys that a side has several times: of as many copies each its counterpart, else the nearest in time.

    Without a packet that is paired already nothing says how far the clocks are apart, and uneven copies stay alone.
    """
    left, left_other = _rest(mine, rows), _rest(other, others)
    kept = _among(mine[left], np.sort(other[left_other])), _among(other[left_other], np.sort(mine[left]))
    left, left_other = left[kept[0]], left_other[kept[1]]
    left = left[np.argsort(mine[left], kind="stable")]
    left_other = left_other[np.argsort(other[left_other], kind="stable")]
    apart = int(np.median(other_t_ns[others] - t_ns[rows])) if len(rows) else None
    found: list[tuple[int, int]] = []
    starts, starts_other = (
        np.flatnonzero(np.diff(keys, prepend=keys[:1] + np.uint64(1))) for keys in (mine[left], other[left_other])
    )
    for copies, copies_other in zip(np.split(left, starts[1:]), np.split(left_other, starts_other[1:]), strict=True):
        if len(copies) == len(copies_other):
            found += zip(copies.tolist(), copies_other.tolist(), strict=True)
        elif apart is not None:
            found += _nearest(copies, copies_other, t_ns[copies] + apart, other_t_ns[copies_other])
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _rest(keys: npt.NDArray[np.uint64], paired: Ints) -> Ints:
    """The rows of `keys` that are not paired yet."""
    free = np.ones(len(keys), bool)
    free[paired] = False
    return np.flatnonzero(free)


def _nearest(copies: Ints, copies_other: Ints, expected_ns: Ints, t_ns: Ints) -> list[tuple[int, int]]:
    """Pair the copies of which there are fewer each with the nearest of the others, in order and none twice."""
    swap = len(copies) > len(copies_other)
    few, many = (copies_other, copies) if swap else (copies, copies_other)
    few_ns, many_ns = (t_ns, expected_ns) if swap else (expected_ns, t_ns)
    pairs, first = [], 0
    for place, (row, when) in enumerate(zip(few, few_ns, strict=True)):
        last = len(many) - (len(few) - place - 1)
        at = first + int(np.argmin(np.abs(many_ns[first:last] - when)))
        pairs.append((int(many[at]), int(row)) if swap else (int(row), int(many[at])))
        first = at + 1
    return pairs
