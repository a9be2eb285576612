"""What became of each packet at the loss stage, in order: the sequence that fits and statistics look at.

Knows traces, no models. Read docs/channels/fit.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hindflight.channels.trace import Trace
from hindflight.toolkit.errors import ChannelError


@dataclass(frozen=True, slots=True)
class Fates:
    """`lost` holds 1 per lost and 0 per delivered packet, `t_ns` when each was sent.

    Packets lost in outages are left out, as outages have a time, not a position; `outage` counts them. `unsure`
    counts losses whose cause the capture does not tell, which are taken as the channel's where the trace says so.
    """

    lost: npt.NDArray[np.uint8]
    t_ns: npt.NDArray[np.int64]
    outage: int
    unsure: int

    def __len__(self) -> int:
        return len(self.lost)

    @property
    def losses(self) -> int:
        """Packets lost."""
        return int(self.lost.sum())


def fates_of(trace: Trace, where: str) -> Fates:
    """Return the fates of a trace's packets; ChannelError if it holds none (`where` names it)."""
    import pyarrow.compute as pc

    packets = trace.packets()
    packets = packets.filter(pc.is_valid(packets["position"]))
    if packets.num_rows == 0:
        raise ChannelError(
            f"{where}: holds no packets, so nothing tells which were lost",
            "fits need a trace by packets: `hindflight channel extract` writes one",
        )
    cause = packets["cause"].cast("string")
    outage = np.asarray(pc.equal(cause, "outage"))
    lost = np.asarray(packets["lost"]).astype(np.uint8)
    unsure = np.asarray(pc.invert(packets["known"])) & (lost > 0)
    return Fates(
        lost=np.ascontiguousarray(lost[~outage]),
        t_ns=np.asarray(packets["t_ns"])[~outage],
        outage=int(outage.sum()),
        unsure=int(unsure[~outage].sum()),
    )
