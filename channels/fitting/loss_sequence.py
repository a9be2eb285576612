"""The loss sequence of a trace: whether each packet was lost at the loss stage, in order. Input of fits and statistics.

See docs/channels/fit.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hindflight.channels.trace import Trace
from hindflight.toolkit.errors import ChannelError


@dataclass(frozen=True, slots=True)
class LossSequence:
    """`lost` is 1 for a lost and 0 for a delivered packet, `t_ns` is when it was sent.

    Packets lost in outages are left out, because outages depend on time, not on position; `outage` counts them.
    `uncertain` counts losses whose cause is not certain and that the trace attributes to the channel.
    """

    lost: npt.NDArray[np.uint8]
    t_ns: npt.NDArray[np.int64]
    outage: int
    uncertain: int

    def __len__(self) -> int:
        return len(self.lost)

    @property
    def losses(self) -> int:
        """Number of lost packets."""
        return int(self.lost.sum())


def loss_sequence_of(trace: Trace, where: str) -> LossSequence:
    """Return the loss sequence of a trace. Raises ChannelError, which names `where`, if it has no packets."""
    import pyarrow.compute as pc

    packets = trace.packets()
    packets = packets.filter(pc.is_valid(packets["position"]))
    if packets.num_rows == 0:
        raise ChannelError(
            f"{where}: has no packets by position, so there is no loss sequence",
            "use a trace with packets: `hindflight channel extract` writes one",
        )
    cause = packets["cause"].cast("string")
    outage = np.asarray(pc.equal(cause, "outage"))
    lost = np.asarray(packets["lost"]).astype(np.uint8)
    uncertain = np.asarray(pc.invert(packets["known"])) & (lost > 0)
    return LossSequence(
        lost=np.ascontiguousarray(lost[~outage]),
        t_ns=np.asarray(packets["t_ns"])[~outage],
        outage=int(outage.sum()),
        uncertain=int(uncertain[~outage].sum()),
    )
