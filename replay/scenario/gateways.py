"""Two gateways that protect the links between them: `[[proxy]]` tables of kind `arq` and `fec`.

They change links, not connections: all flows and datagrams on these links share the protection and what it costs.
Depends on links and nodes, not on the engine. Read docs/proxies.md, "Gateways that protect links".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import ValidationError

from hindflight.channels.models.link_layer import Arq, Fec, LinkModel, LinkProtection, LossModel
from hindflight.channels.models.losses import NoLoss
from hindflight.channels.models.parameters import describe
from hindflight.replay.scenario.flows import USUAL_PACKET_BYTES

if TYPE_CHECKING:
    from hindflight.replay.scenario.flows import SharingFlow
    from hindflight.replay.scenario.proxies import Proxy
    from hindflight.replay.scenario.topology import Tree

Link: TypeAlias = Any
"""A link of a scenario as `model` has it, which imports this module."""
Direction: TypeAlias = Any
"""One direction of a link."""

Way = Literal["a2b", "b2a"]
Step = tuple[int, Way]
"""A link that data cross between two gateways, by its number, and in which of its directions."""

_LAYER_KEYS = {
    kind: [key for key in model.model_fields if key not in {"model", "over"}]
    for kind, model in (("arq", Arq), ("fec", Fec))
}
"""What the `layer` of each kind may hold."""
_PLACEHOLDER = {"model": "bernoulli", "per": 0.0}
"""Stands for the losses below the protection while its keys are read."""


@dataclass(frozen=True, slots=True)
class Protected:
    """The links of a scenario under its gateways, and the share of the rate that data have left of each."""

    links: tuple[Link, ...]
    rate_shares: Mapping[Step, float]


def protect(tree: Tree, given: Sequence[Link], gateways: Sequence[Proxy]) -> Protected:
    """Return the links `given` with what `gateways`, which have no problems, do to them."""
    links = list(given)
    shares: dict[Step, float] = {}
    for gateway in gateways:
        steps = _steps(tree, links, gateway)
        for number, way in _lossy(tree, links, gateway):
            links[number] = _under(links[number], way, gateway)
        if gateway.kind == "fec":
            for step in steps:
                shares[step] = shares.get(step, 1.0) * code_rate(gateway)
    return Protected(tuple(links), shares)


def code_rate(gateway: Proxy) -> float:
    """Return the share of a block that is data."""
    code = Fec.model_validate({"model": "fec", "over": _PLACEHOLDER, **(gateway.layer or {})})
    return (code.block - code.repair) / code.block


def problems_of_gateways(
    tree: Tree,
    links: Sequence[Link],
    tables: Sequence[Proxy],
    flows: Sequence[SharingFlow],
    chains: Sequence[Sequence[Proxy]],
) -> Iterator[str]:
    """Yield what is wrong with the gateways among the `[[proxy]]` tables of a scenario, each with its key path.

    `chains` are those of compare.proxies.
    """
    for i, gateway in enumerate(tables):
        if not gateway.protects or not {gateway.node, gateway.peer} <= set(tree.nodes):
            continue
        yield from (f"proxy[{i}].{line}" for line in _problems(tree, links, gateway))
        if any(gateway.name in flow.proxies for flow in flows):
            yield f"proxy[{i}]: {gateway.name!r} protects links, which all flows share; name it in compare.proxies only"
    for i, chain in enumerate(chains):
        gateways = [one for one in chain if one.protects and {one.node, one.peer} <= set(tree.nodes)]
        for one, other in combinations(gateways, 2):
            both = set(_lossy(tree, links, one)) & set(_lossy(tree, links, other))
            for number, _ in sorted(both):
                yield (
                    f"compare.proxies[{i}]: {one.name!r} and {other.name!r} both protect link {links[number].name!r}; "
                    "it takes one of them"
                )


def _lossy(tree: Tree, links: Sequence[Link], gateway: Proxy) -> list[Step]:
    return [(number, way) for number, way in _steps(tree, links, gateway) if _loses(links[number], way)]


def _problems(tree: Tree, links: Sequence[Link], gateway: Proxy) -> Iterator[str]:
    steps = _steps(tree, links, gateway)
    if not steps:
        yield f"peer: {gateway.peer!r} is the node of this gateway"
        return
    between = f"between {gateway.node!r} and {gateway.peer!r}"
    lossy = _lossy(tree, links, gateway)
    if not lossy:
        yield f"peer: no link {between} loses packets, so there is nothing to protect"
    if gateway.kind == "fec" and len(lossy) > 1:
        named = ", ".join(links[number].name for number, _ in lossy)
        yield f"peer: {len(lossy)} links {between} lose packets ({named}); a code is modelled over one of them"
    for number, way in lossy:
        link = links[number]
        below = link.channel if link.channel is not None else _direction(link, way).loss
        if not isinstance(below, LossModel | LinkModel):
            yield f"peer: link {link.name!r} replays a recording or is protected already; it takes no further layer"
        elif (
            gateway.kind == "fec" and _direction(link, way).rate is None and "packet_time" not in (gateway.layer or {})
        ):
            yield f"layer.packet_time: this key is missing; link {link.name!r} has no rate that gives it"
        timed = "try_time" in (gateway.layer or {}) or link.forward.delay + link.backward.delay > 0
        if gateway.kind == "arq" and link.channel is not None and not timed:
            yield f"layer.try_time: this key is missing; link {link.name!r} has no delay but that of its channel"
        try:
            _layer(gateway, link, way)
        except ValidationError as error:
            of_key = any(each["loc"] for each in error.errors())
            allowed = f"; allowed: {', '.join(_LAYER_KEYS[gateway.kind])}" if _has_unknown_key(error) else ""
            yield f"layer{'.' if of_key else ': '}{describe(error)}{allowed}"
            return
    if gateway.kind == "fec":
        for number, way in steps:
            if _direction(links[number], way).rate_file is not None:
                yield f"peer: link {links[number].name!r} has a rate_file, which the redundancy cannot share"


def _has_unknown_key(error: ValidationError) -> bool:
    return any(each["type"] == "extra_forbidden" for each in error.errors())


def _steps(tree: Tree, links: Sequence[Link], gateway: Proxy) -> list[Step]:
    """Return the links from a gateway to its peer, in the direction of the data."""
    steps: list[Step] = []
    for before, after in pairwise(tree.way(gateway.node, gateway.peer or gateway.node)):
        (number,) = tree.links((before, after))
        ends = links[number].ends
        down = ends == (before, after) if ends is not None else tree.joints.get(after, ("", 0))[0] == before
        steps.append((number, "a2b" if down else "b2a"))
    return steps


def _direction(link: Link, way: Way) -> Direction:
    return link.forward if way == "a2b" else link.backward


def _loses(link: Link, way: Way) -> bool:
    return link.channel is not None or not isinstance(_direction(link, way).loss, NoLoss)


def _layer(gateway: Proxy, link: Link, way: Way) -> LinkProtection:
    """Return the protection over nothing yet. Where the table does not say so, the failure of a transmission is known
    after the round trip of the link, and the packets of a block follow each other as the link serialises full ones."""
    given = dict(gateway.layer or {})
    if gateway.kind == "arq":
        round_trip_ns = link.forward.delay + link.backward.delay
        given.setdefault("try_time", f"{max(1, round_trip_ns)} ns")
        return Arq.model_validate({"model": "arq", "over": _PLACEHOLDER, **given})
    rate = _direction(link, way).rate
    if rate is not None:
        given.setdefault("packet_time", f"{max(1, round(USUAL_PACKET_BYTES * 8e9 / rate))} ns")
    return Fec.model_validate({"model": "fec", "over": _PLACEHOLDER, **given})


def _under(link: Link, way: Way, gateway: Proxy) -> Link:
    """Return the link with the protection over what it loses. A channel is that of both directions.

    In order means that the far gateway resequences: packets are sent while earlier ones are repeated (selective
    repeat).
    """
    layer = _layer(gateway, link, way)
    link = link.model_copy(update={"in_order": link.in_order or layer.in_order})

    def over(below: Any) -> LinkProtection:
        return layer.model_copy(update={"over": below, "in_order": False})

    if link.channel is not None:
        return link.model_copy(update={"channel": over(link.channel)})
    ways: list[Way] = ["a2b", "b2a"] if gateway.kind == "arq" else [way]
    for each in ways:
        direction = _direction(link, each)
        if isinstance(direction.loss, NoLoss):
            continue
        protected = over(direction.loss)
        if each == "a2b":
            link = link.model_copy(update={"loss": protected})
        else:
            link = link.model_copy(update={"reverse": direction.model_copy(update={"loss": protected})})
    return link
