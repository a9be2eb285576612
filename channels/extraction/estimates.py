"""Named estimates of the link, each with interval and method, and sentences about what the capture hides.

Reads arrays and attributions, not tables. See docs/channels/extract.md.
"""

from __future__ import annotations

import numpy as np

from hindflight.channels.estimate import Estimate
from hindflight.channels.extraction import bottleneck as _bottleneck
from hindflight.channels.extraction.arrivals import Arrivals
from hindflight.channels.extraction.attribution import CHANNEL, OUTAGE, QUEUE, Attribution
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import Link, base_rtt_ns
from hindflight.toolkit.units import format_rate

SMALL_PACKET_SHARE = 0.9
"""Cross traffic smaller than this share of full-sized packets makes packet and byte limits differ."""

MAX_DELAYED_ACK_NS = 500_000_000
"""Maximum delay of an ACK (RFC 9293 §3.8.6.3)."""

BY_SIZE = "By how much longer larger packets take that wait for nothing shows"
"""How sizes show a rate; what they show follows."""


def estimates(
    delivery: Delivery, link: Link, verdicts: Attribution, arrivals: Arrivals | None = None
) -> tuple[Estimate, ...]:
    """Return all estimates: rate, delays, queue limit, loss shares."""
    return (
        _rate(delivery, link),
        *_delays(delivery, link),
        _queue_limit(delivery, link),
        _loss_share(delivery, verdicts),
        *(() if arrivals is None else (_ack_loss_share(delivery, verdicts, arrivals),)),
    )


def _rate(delivery: Delivery, link: Link) -> Estimate:
    rate, others = link.rate, int(np.sum(~delivery.from_flow))
    if not rate.known:
        how = (
            "Lower bound: the most that was acknowledged per time, over a minimum round trip or longer. Too few "
            "packets queued at the bottleneck for a measurement of its rate."
        )
        high = rate.high if np.isfinite(rate.high) else None
        if high is not None:
            how += f" {BY_SIZE} the upper bound."
        return Estimate("rate_bps", None, rate.low, high, "bit/s", known=False, how=how)
    if not rate.pairs:
        how = f"No packets queued at the bottleneck. {BY_SIZE} it, if no other link of the path is about as slow."
        return Estimate("rate_bps", rate.bps, rate.low, rate.high, "bit/s", known=True, how=how)
    how = (
        f"IP bytes over time in {rate.pairs} intervals between ACKs during which packets queued at the bottleneck and "
        "none was lost."
    )
    if others:
        how += f" {others} packets of cross traffic are included."
    if not rate.steady:
        how += " They disagree: cross traffic takes a share, or the rate varies; 95 % of them are in the interval."
    elif len(rate.states) > 1:
        listed = ", then ".join(format_rate(bps) for _, _, bps in rate.states)
        how += f" The rate changed ({listed}); the value is the one that lasted longest."
    return Estimate("rate_bps", rate.bps, rate.low, rate.high, "bit/s", known=rate.steady, how=how)


def _delays(delivery: Delivery, link: Link) -> tuple[Estimate, ...]:
    trips = np.sort(_bottleneck.rtt_ns(delivery)[delivery.prompt])
    first, last, _ = max(link.base.spans, key=lambda span: delivery.t_ns[span[1] - 1] - delivery.t_ns[span[0]])
    base = base_rtt_ns(delivery, link, (first + last) // 2)
    ack_ns = float(link.base.per_packet_ns[(first + last) // 2]) - base
    rate_part = link.rate.half_share
    full = float(np.median(link.full_ns))
    # A minimum of many is too low only by what was subtracted: the serialisation of the packet at an uncertain
    # rate, and that of the ACK at a reverse rate that was not measured. It is too high by the delay that all
    # packets met; the next larger values bound that. A level that was never observed with an empty queue may be
    # off by one packet either way.
    within = delivery.prompt & (np.arange(len(delivery)) >= first) & (np.arange(len(delivery)) < last)
    bare = np.sort((_bottleneck.rtt_ns(delivery) - link.service_ns)[within])
    scatter = float(bare[min(len(bare) - 1, 4)] - bare[0]) if len(bare) else full
    stepped = full if link.base.changes and not link.base.sure else 0.0
    # Where the serialisation that was subtracted took all of the round trip, it may be wrong by one packet.
    clipped = full if base == 0 else 0.0
    low = max(0.0, base - rate_part * full - min(scatter, full) - ack_ns - stepped)
    high = base + ack_ns + stepped + clipped if link.rate.known else float(trips[0])
    how = (
        "Propagation delay of both directions: the minimum round-trip time minus the serialisation of its data packet "
        f"and, at the same rate, of its ACK ({ack_ns / 1e6:.3f} ms). Includes the delay of the hosts."
    )
    if link.base.changes:
        how += " The delay changed during the flow; the value is the level that lasted longest."
    known = link.unshared and link.rate.known
    return (
        Estimate("base_rtt_ns", base, low, high, "ns", known=known, how=how),
        Estimate(
            "min_rtt_ns", float(trips[0]), float(trips[0]), float(trips[min(len(trips) - 1, 4)]), "ns", known=True,
            how="Minimum round-trip time as measured, with serialisation.",
        ),
        Estimate(
            "one_way_delay_ns", base / 2, 0.0, base, "ns", known=False,
            how="Half of base_rtt_ns: one capture at the sender cannot separate the two directions.",
        ),
    )  # fmt: skip


def _queue_limit(delivery: Delivery, link: Link) -> Estimate:
    ceiling = link.ceiling
    if ceiling is None:
        maximum = float(np.max(link.replay.level[delivery.from_flow], initial=0.0))
        how = f"The queue never filled in the capture: it held at most {maximum:.0f} packets, and none was lost to it."
        return Estimate("queue_limit_pkts", None, float(np.floor(maximum)), None, "pkts", known=False, how=how)
    value = float(round(ceiling.limit))
    low, high = ceiling.interval(link.rate.half_share)
    how = (
        f"Queue length, without the packet in service, above which losses start: {ceiling.losses_above} of the "
        f"{ceiling.packets_above} packets that met a longer queue were lost (log likelihood gain {ceiling.gain:.0f})."
    )
    if not link.unshared:
        how += " Cross traffic or a drifting delay makes it inexact."
    others = delivery.size_bytes[~delivery.observed]
    mixed = len(others) > 0 and float(np.mean(others)) < SMALL_PACKET_SHARE * _bottleneck.full_size(delivery)
    if mixed:
        how += " In full-sized packets: cross traffic has smaller ones, and the limit may count packets or bytes."
    known = link.unshared and link.rate.known and not mixed
    return Estimate("queue_limit_pkts", value, low, high, "pkts", known=known, how=how)


def _wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    z2 = 1.96**2
    middle = (hits + z2 / 2) / (trials + z2)
    half = 1.96 * np.sqrt(hits * (trials - hits) / max(trials, 1) + z2 / 4) / (trials + z2)
    return float(max(0.0, middle - half)), float(middle + half)


def _loss_share(delivery: Delivery, verdicts: Attribution) -> Estimate:
    """Share of packets lost by the channel outside outages, those of parallel flows included. Wilson's interval assumes
    independent losses."""
    sure = verdicts.known & (verdicts.cause != QUEUE) & (verdicts.cause != OUTAGE)
    trials, hits = int(sure.sum()), int((sure & (verdicts.cause == CHANNEL)).sum())
    low, high = _wilson(hits, trials)
    parallel = bool(np.any(delivery.observed & ~delivery.from_flow))
    packets = "data packets of the flow and of those parallel to it" if parallel else "data packets"
    return Estimate(
        "channel_loss_share", hits / max(trials, 1), low, high, "",
        known=True,
        how=f"{hits} losses among {trials} {packets} that reached the loss stage outside outages. The interval "
        "assumes independent losses; with bursts it is too narrow.",
    )  # fmt: skip


def _ack_loss_share(delivery: Delivery, verdicts: Attribution, arrivals: Arrivals) -> Estimate:
    """Share of the receiver's segments lost on the return path outside outages, with Wilson's interval."""
    near = np.zeros(len(arrivals.answered), dtype=np.bool_)
    for first, _, following in verdicts.outages:
        # An outage first loses ACKs of data sent up to one round trip before the first data packet that it loses.
        before = delivery.t_ns[first] - _bottleneck.rtt_ns(delivery)[:first].max(initial=0) - MAX_DELAYED_ACK_NS
        after = np.inf if following is None else delivery.record[following]
        early = int(delivery.record[delivery.from_flow & (delivery.t_ns >= before)][0])
        near |= (arrivals.answered >= early) & (arrivals.answered < after)
    lost_in_outages, in_outages = int((near & arrivals.answer_lost).sum()), int(near.sum())
    trials, hits = arrivals.acks - in_outages, arrivals.acks_lost - lost_in_outages
    low, high = _wilson(hits, trials)
    how = f"{hits} of {trials} segments that the receiver sent are not in the sender's capture"
    if verdicts.outages:
        how += f", not counting {lost_in_outages} of {in_outages} sent in outages or up to a round trip before them"
    return Estimate(
        "ack_loss_share", hits / max(trials, 1), low, high, "", known=trials > 0,
        how=f"{how}. The interval assumes independent losses.",
    )  # fmt: skip


def unknowns(
    delivery: Delivery, link: Link, verdicts: Attribution, seen: tuple[str, Arrivals | None]
) -> tuple[str, ...]:
    """Return one sentence per property that the captures do not show.

    `seen` is the vantage point, and what a second capture contains.
    """
    vantage, arrivals = seen
    sentences = [] if arrivals else ["Losses of ACKs on the return path are not visible: a later ACK covers them."]
    sentences += [
        "Losses that the link would have caused while nothing was sent are not known.",
        "The path is modelled as one hop: one capture cannot separate links before or after the bottleneck.",
        "The state of the link before the first and after the last packet of the capture is not known.",
        "The delay of each direction is not known; half of the round trip is assumed.",
        "The rate of the reverse direction is not known; ACKs are assumed to be serialised at the forward rate.",
    ]
    if not delivery.observed.all():
        sentences.append(
            "Cross traffic is assumed to be served as it was sent: its losses in the queue, and traffic that enters "
            "the link elsewhere, are not visible."
        )
    if vantage != "sender":
        sentences.append(
            f"The vantage point of the capture is `{vantage}`, not `sender`: losses before it are not visible, and "
            "delays count from it."
        )
    if not link.rate.known:
        sentences.append("The bottleneck was rarely busy: only a lower bound of its rate is known.")
    elif not link.rate.steady:
        sentences.append("The rate of the bottleneck varied, or cross traffic took a share of it.")
    if not link.unshared:
        sentences.append(
            "Round-trip times do not follow the queue of this flow: cross traffic shares the queue, or the delay "
            "drifts. Causes of losses are inferred from the round-trip times around them only."
        )
    if link.ceiling is None:
        sentences.append("The limit of the queue is not known: no loss shows that it ever filled.")
    lost = delivery.lost & delivery.from_flow
    open_losses = int((lost & ~verdicts.known).sum())
    if open_losses:
        sentences.append(f"The cause of {open_losses} of {int(lost.sum())} losses is not known with odds of 9 to 1.")
    undecided = delivery.undecided & delivery.from_flow
    if undecided.any():
        sentences.append(f"The capture does not show whether {int(undecided.sum())} packets arrived.")
    if verdicts.outages:
        sentences.append(
            "An outage began between the last packet delivered and the first one lost, and ended between the last one "
            "lost and the next one delivered; half of each of these times is assumed to be outage."
        )
    return tuple(sentences)
