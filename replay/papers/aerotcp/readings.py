"""What Shang, Hadjitheodosiou and Baras 2005 leave open: our defaults, other readings, and experiments."""

from __future__ import annotations

from hindflight.replay.papers.aerotcp.cells import CONNECTION_BPS, MSS_BYTES, PACKET_BYTES, SATELLITE_BPS, TEN
from hindflight.replay.papers.model import Cell, Change, Choice, Experiment, Reading, table

CHOICES: tuple[Choice, ...] = (
    Choice(
        "bit error rates",
        "very low 1e-8, then 1e-6 and 1e-5",
        "the exponents are lost in print; read from what the text says of each",
    ),
    Choice(
        "bursts", "independent bit errors", "the text adds a Gilbert-Elliott model without parameters: see that reading"
    ),
    Choice(
        "RTT of 480 ms", "with one packet and its ACK served", "the text says about 480 ms. Known from earlier trials"
    ),
    Choice("delayed ACKs", "none", "the formula of section II acknowledges every segment. Known from earlier trials"),
    Choice(
        "buffers",
        "satellite 4 times, ground receive 2 times, aircraft send once the peak rate times 480 ms",
        "section V.B; the RTT of the product is not given",
    ),
    Choice("window of end-to-end SACK", "64 KiB", "section II: windows of 16 bits"),
    Choice(
        "queue of the satellite link", "1000 packets", "not given; section V.A says that the link is never congested"
    ),
    Choice("minimum RTO", "1 s, and initial window of 2", "not given; RFC 2988 and RFC 2581"),
    Choice(
        "utilisation",
        "delivered packets over 4 Mbit/s until the last file is loaded",
        "not given; a sum of goodputs, which the first run had, can exceed the link",
    ),
)


def _bursts(cell: Cell) -> tuple[Change, ...]:
    """Bursts of three packets with the mean loss that the bit error rate gives packets of 1500 octets."""
    loss = dict(cell.get("links.satellite.loss", table(model="ber", ber=1e-6)))
    ber = loss.get("ber", 0.0)
    if not ber:
        return ()
    mean = 1 - (1 - ber) ** (8 * 1500)
    return (("links.satellite.loss", table(model="gilbert_elliott", mean_loss=mean, mean_burst=3.0)),)


def _every(key: str, value: object) -> tuple[Change, ...]:
    """Return the change of a key of all ten connections; a scenario with one has no table for the others."""
    return ((f"flow.{key}", value), *((f"flows.f{number}.{key}", value) for number in range(2, 11)))


BURSTS = Reading("bursts", "Gilbert-Elliott with bursts of 3 packets and the same mean loss", _bursts)
LITERAL = Reading("literal", "losses in bursts, as the text says", _bursts, literal=True)
DELAYED = Reading("delayed ACKs", "receivers acknowledge every second segment", _every("delayed_ack", True))
PROPAGATION = Reading(
    "propagation of 480 ms",
    "480 ms without the time to send a packet",
    (("links.satellite.delay", "240 ms"), ("links.satellite.reverse.delay", "240 ms")),
)
FAST_TIMER = Reading("minimum RTO of 200 ms", "the minimum RTO of Linux", _every("min_rto", "200 ms"))


def _effective(cell: Cell) -> tuple[Change, ...]:
    """Return the satellite rate less the headers, 1460 of 1500 octets, by which AeroTCP sets its windows."""
    if cell.get("variants.sat", "") is None:
        return ()
    return (("variants.sat.satellite_rate", f"{SATELLITE_BPS * MSS_BYTES / PACKET_BYTES:.0f} bit/s"),)


EFFECTIVE = Reading("effective rate", "AeroTCP sets its windows by the rate less the headers (section V.B)", _effective)
READINGS = (LITERAL, EFFECTIVE, DELAYED, PROPAGATION, FAST_TIMER)


def _adaptive(cell: Cell) -> tuple[Change, ...]:
    """Return the change of the cells that run AeroTCP."""
    return () if cell.get("variants.sat", "") is None else (("variants.sat.allocation", "adaptive"),)


ADAPTIVE = Reading("adaptive shares", "the window follows the number of open connections (section V.C)", _adaptive)


def _client_window(size: str) -> Reading:
    return Reading(f"client window {size}", "a smaller default window of the clients", _every("receive_buffer", size))


_WINDOWS = tuple(_client_window(size) for size in ("16 KiB", "32 KiB"))
_LOWER_QUEUE = Reading(
    "queue 200",
    "a queue that holds more than the fixed windows of all connections, and less than the open ones",
    (("links.satellite.queue", "200 pkts"),),
)


def _apart(cell: Cell) -> tuple[Change, ...]:
    """Return the changes that give the one connection that is left a satellite link with its share of the rate."""
    if cell.scenario != TEN:
        return ()
    rate, delay = f"{CONNECTION_BPS / 1e3:g} kbit/s", "224.6 ms"
    link = "links.satellite"
    ways = tuple(
        (f"{link}.{way}{key}", value) for way in ("", "reverse.") for key, value in (("rate", rate), ("delay", delay))
    )
    return (("flows", None), *ways)


APART = Reading(
    "a link per connection",
    "every connection has 400 kbit/s of its own (section VI: about 400 kbit/s for one connection); chosen after the "
    "first runs",
    _apart,
)
EXPERIMENTS: dict[str, Experiment] = {
    "004-C04": Experiment(
        "window and losses in a row",
        (),
        "The window at the loss is varied by the parts themselves: three duplicate ACKs need a window of 4 packets, "
        "and two losses one of 10, so that at exactly 4 and 10 no timeout is needed, where the text says above.",
    ),
    "004-C18": Experiment("the window of the clients, delayed ACKs, bursts", (*_WINDOWS, DELAYED, BURSTS)),
    "004-C22": Experiment("the window of the clients, delayed ACKs", (*_WINDOWS, DELAYED)),
    "004-C23": Experiment(
        "the share of a connection, delayed ACKs, whether connections share the link",
        (APART, ADAPTIVE, EFFECTIVE, DELAYED),
        "With hardly any errors both fill the link. Split SACK then also uses what other connections leave idle, "
        "while the static window of AeroTCP keeps each connection to its tenth. With a link per connection nothing is "
        "left idle, and AeroTCP is first.",
    ),
    "004-C24": Experiment(
        "the window of the clients",
        _WINDOWS,
        "With 64 KiB and no errors SACK end to end fills the link as well, so splitting has little to gain.",
    ),
    "004-C26": Experiment(
        "the share of a connection, delayed ACKs, bursts",
        (ADAPTIVE, EFFECTIVE, DELAYED, BURSTS),
        "A longer file spreads the start of the others, which AeroTCP has not, over more data; what is left of the "
        "advantage is the recovery of losses, so that the ratio of the times falls by 4 %.",
    ),
    "004-C28": Experiment("the queue of the satellite link", (_LOWER_QUEUE,)),
}
