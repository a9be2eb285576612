"""Deliveries for tests, by when packets were sent and acknowledged."""

from __future__ import annotations

import numpy as np

from hindflight.channels.extraction.delivery import Delivery, Ints


def packets(t_ns: Ints, acked_ns: Ints) -> Delivery:
    """Full-sized packets of one flow that were sent and acknowledged at these times, each by its own ACK; -1: lost."""
    n, lost = len(t_ns), acked_ns < 0
    none = np.zeros(n, dtype=np.bool_)
    return Delivery(
        direction="a2b", record=np.arange(1, n + 1), t_ns=t_ns, size_bytes=np.full(n, 1500), seq=np.arange(n),
        seq_end=np.arange(n) + 1, lost=lost, acked_ns=acked_ns, prompt=~lost, undecided=none, covered_ns=acked_ns,
        from_flow=~none, observed=~none, ack_t_ns=np.unique(acked_ns[~lost]), ack_bytes=40, handshake=None,
    )  # fmt: skip
