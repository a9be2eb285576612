"""What the capture says about the link as named numbers, each with its interval and how it was got; and
what it hides.

Knows arrays and verdicts, not tables. Read docs/channels/extract.md first.
"""

from __future__ import annotations

import numpy as np

from hindflight.channels.estimate import Estimate
from hindflight.channels.extraction import bottleneck as _bottleneck
from hindflight.channels.extraction.arrivals import Arrivals
from hindflight.channels.extraction.attribution import CHANNEL, OUTAGE, QUEUE, Verdicts
from hindflight.channels.extraction.delivery import Delivery
from hindflight.channels.extraction.link import Link, base_rtt_ns

SMALL = 0.9
"""Other packets smaller than this share of the flow's own make a limit in packets differ from one in octets."""

DELAYED_ACK_NS = 500_000_000
"""The longest that an answer to data may wait (RFC 9293 §3.8.6.3)."""


def estimates(
    delivery: Delivery, link: Link, verdicts: Verdicts, arrivals: Arrivals | None = None
) -> tuple[Estimate, ...]:
    """All estimates, in the order that a reader wants them."""
    return (
        _rate(delivery, link),
        *_delays(delivery, link),
        _queue_limit(delivery, link),
        _loss_share(verdicts),
        *(() if arrivals is None else (_ack_loss_share(delivery, verdicts, arrivals),)),
    )


def _rate(delivery: Delivery, link: Link) -> Estimate:
    rate, others = link.rate, int(np.sum(~delivery.own))
    if not rate.known:
        how = (
            "Lower bound: the most that was acknowledged within one least round trip; too few packets ever waited "
            "at the bottleneck to time it."
        )
        return Estimate("rate_bps", None, rate.low, None, "bit/s", known=False, how=how)
    how = (
        f"IP bytes over time in {rate.pairs} spans between ACKs while packets waited at the bottleneck and "
        "nothing was lost in between."
    )
    if others:
        how += f" {others} packets of other traffic on the same way are counted in."
    if not rate.steady:
        how += " The spans disagree: other traffic takes a share, or the rate varies; 95 % of them lie in the interval."
    elif len(rate.states) > 1:
        listed = ", ".join(f"{bps:.0f}" for _, _, bps in rate.states)
        how += f" The rate changed ({listed} bit/s in turn); this is the one that held longest."
    return Estimate("rate_bps", rate.bps, rate.low, rate.high, "bit/s", known=rate.steady, how=how)


def _delays(delivery: Delivery, link: Link) -> tuple[Estimate, ...]:
    trips = np.sort(_bottleneck.rtt_ns(delivery)[delivery.prompt])
    first, last, _ = max(link.base.spans, key=lambda span: delivery.t_ns[span[1] - 1] - delivery.t_ns[span[0]])
    base = base_rtt_ns(delivery, link, (first + last) // 2)
    ack_ns = float(link.base.per_packet_ns[(first + last) // 2]) - base
    rate_part = (link.rate.high - link.rate.low) / (2 * link.rate.bps) if link.rate.known else 1.0
    full = float(np.median(link.full_ns))
    # The least of many is never too low, but for what was subtracted: serialisation at an uncertain rate,
    # and an ACK's at a reverse rate that nobody measured. It is too high by what no packet was free of: the
    # next least ones tell. A level that was never seen with an empty queue may be off by a packet either
    # way.
    within = delivery.prompt & (np.arange(len(delivery)) >= first) & (np.arange(len(delivery)) < last)
    bare = np.sort((_bottleneck.rtt_ns(delivery) - link.service_ns)[within])
    scatter = float(bare[min(len(bare) - 1, 4)] - bare[0]) if len(bare) else full
    stepped = full if len(link.base.spans) > 1 else 0.0
    low = base - rate_part * full - min(scatter, full) - ack_ns - stepped
    high = base + ack_ns + stepped if link.rate.known else float(trips[0])
    how = (
        "Propagation both ways: least round trip less the serialisation of its data packet and, taken at the same "
        f"rate, of its ACK ({ack_ns / 1e6:.3f} ms); includes the hosts' own delay."
    )
    if len(link.base.spans) > 1:
        how += " The delay changed during the flow; this is the level that held longest."
    known = link.alone and link.rate.known
    return (
        Estimate("base_rtt_ns", base, low, high, "ns", known=known, how=how),
        Estimate(
            "min_rtt_ns", float(trips[0]), float(trips[0]), float(trips[min(len(trips) - 1, 4)]), "ns", known=True,
            how="Least round trip as measured, all serialisation included.",
        ),
        Estimate(
            "one_way_delay_ns", base / 2, 0.0, base, "ns", known=False,
            how="Half of base_rtt_ns: one capture at the sender cannot tell the two directions apart.",
        ),
    )  # fmt: skip


def _queue_limit(delivery: Delivery, link: Link) -> Estimate:
    ceiling = link.ceiling
    if ceiling is None:
        most = float(np.max(link.replay.level[delivery.own], initial=0.0))
        how = f"The queue never filled while captured: {most:.0f} packets waited at most, and nothing was lost to it."
        return Estimate("queue_limit_pkts", None, float(np.floor(most)), None, "pkts", known=False, how=how)
    value = float(round(ceiling.limit))
    spread = (link.rate.high - link.rate.low) / (2 * link.rate.bps) if link.rate.known else 1.0
    half = 1.0 + value * spread + abs(ceiling.limit - ceiling.low)
    how = (
        f"Packets waiting, besides the one in service, above which losses set in: {ceiling.losses_above} of the "
        f"{ceiling.packets_above} packets that met more were lost (log likelihood gain {ceiling.gain:.0f})."
    )
    if not link.alone:
        how += " Other traffic or a wandering delay blurs it."
    others = delivery.size_bytes[~delivery.own]
    mixed = len(others) > 0 and float(np.mean(others)) < SMALL * _bottleneck.full_size(delivery)
    if mixed:
        how += (
            " In full-sized packets' worth: smaller ones of other traffic wait there too, and a limit may count either."
        )
    known = link.alone and link.rate.known and not mixed
    return Estimate("queue_limit_pkts", value, max(0.0, value - half), value + half, "pkts", known=known, how=how)


def _wilson(hits: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z2 = 1.96**2
    middle = (hits + z2 / 2) / (trials + z2)
    half = 1.96 * np.sqrt(hits * (trials - hits) / max(trials, 1) + z2 / 4) / (trials + z2)
    return float(max(0.0, middle - half)), float(middle + half)


def _loss_share(verdicts: Verdicts) -> Estimate:
    """Share of packets that the channel lost, outages left out; Wilson's interval, which takes losses as
    independent."""
    sure = verdicts.known & (verdicts.cause != QUEUE) & (verdicts.cause != OUTAGE)
    trials, hits = int(sure.sum()), int((sure & (verdicts.cause == CHANNEL)).sum())
    low, high = _wilson(hits, trials)
    return Estimate(
        "channel_loss_share", hits / max(trials, 1), low, high, "",
        known=True,
        how=f"{hits} losses among {trials} data packets that reached the loss stage outside outages; the interval "
        "takes losses as independent, bursts widen it.",
    )  # fmt: skip


def _ack_loss_share(delivery: Delivery, verdicts: Verdicts, arrivals: Arrivals) -> Estimate:
    """Share of the receiver's segments that did not get back, outages left out; with Wilson's interval."""
    near = np.zeros(len(arrivals.answered), dtype=np.bool_)
    for first, _, following in verdicts.outages:
        # The first answers that an outage takes are to data sent up to a round trip before the first that it takes.
        before = delivery.t_ns[first] - _bottleneck.rtt_ns(delivery)[:first].max(initial=0) - DELAYED_ACK_NS
        after = np.inf if following is None else delivery.record[following]
        early = int(delivery.record[delivery.own & (delivery.t_ns >= before)][0])
        near |= (arrivals.answered >= early) & (arrivals.answered < after)
    taken, besides = int((near & arrivals.answer_lost).sum()), int(near.sum())
    trials, hits = arrivals.acks - besides, arrivals.acks_lost - taken
    low, high = _wilson(hits, trials)
    how = f"{hits} of {trials} segments that the receiver sent are not in the sender's capture"
    if verdicts.outages:
        how += f", besides {taken} of {besides} that it sent in outages or up to a round trip before"
    return Estimate(
        "ack_loss_share", hits / max(trials, 1), low, high, "", known=trials > 0,
        how=f"{how}; the interval takes losses as independent.",
    )  # fmt: skip


def unknowns(delivery: Delivery, link: Link, verdicts: Verdicts, seen: tuple[str, Arrivals | None]) -> tuple[str, ...]:
    """What the captures do not tell, one sentence each; `seen` is the vantage, and what a second capture holds."""
    vantage, arrivals = seen
    sentences = [] if arrivals else ["Losses of ACKs on the way back are not seen: a later ACK covers them."]
    sentences += [
        "What the link would have lost while nothing was sent is not known.",
        "The path is taken as one hop: links before or behind the bottleneck cannot be told apart from one capture.",
        "What happened before the first and after the last packet of the capture is not known.",
        "How the round trip divides into the two directions is not known; half each is assumed.",
        "The rate of the reverse direction is not known; ACKs are taken to be serialised at the forward rate.",
    ]
    if not delivery.own.all():
        sentences.append(
            "Other traffic is taken as served as it was sent: what the queue dropped of it is not seen, nor what "
            "enters the link elsewhere."
        )
    if vantage != "sender":
        sentences.append(
            f"The capture's vantage is `{vantage}`, not `sender`: losses before it are not seen, delays count from it."
        )
    if not link.rate.known:
        sentences.append("The bottleneck was hardly ever busy: its rate is known as a lower bound only.")
    elif not link.rate.steady:
        sentences.append("The rate of the bottleneck varied, or other traffic took a share of it.")
    if not link.alone:
        sentences.append(
            "Round trips do not follow this flow's own queue: other traffic shares it, or the delay wanders; causes of "
            "losses rest on the round trips around them alone."
        )
    if link.ceiling is None:
        sentences.append("The queue's limit is not known: it never filled, or never showed that it did.")
    open_losses = int((delivery.lost & ~verdicts.known).sum())
    if open_losses:
        sentences.append(f"{open_losses} of {int(delivery.lost.sum())} losses cannot be ascribed with odds of 9 to 1.")
    if delivery.undecided.any():
        sentences.append(
            f"{int(delivery.undecided.sum())} packets were neither acknowledged nor lost when the capture ended."
        )
    if verdicts.outages:
        sentences.append(
            "An outage began at some time between the last packet delivered and the first one lost, and ended at some "
            "time between the last packet lost and the next one delivered; half of these times is taken as out."
        )
    return tuple(sentences)
