"""Which proxies a draft proposes for a path, where, with which variant onward and how much memory."""

from __future__ import annotations

import dataclasses
import tomllib

import pytest

from hindflight.replay.scenario.draft import Draft, LinkChange, Stack, Value, draft_scenario
from hindflight.replay.scenario.from_capture import (
    Choice,
    _assumptions,
    _chosen_proxies,
    _proxied_already,
    about_proxies,
)
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.replay.scenario.proposals import PathFacts, propose, tables_of

# 4 Mbit/s over 480 ms: a pipe of 160 packets of 1500 octets.
CLEAN = PathFacts(4e6, 480e6, 1500)
LOSSY = dataclasses.replace(CLEAN, loss_share=1e-3)
VARIANTS = ("newreno", "cubic", "bbr", "hybla")


@pytest.mark.parametrize(
    ("loss_share", "lossy"),
    [(0.0, False), (1.5 / 162**2, False), (1.5 / 158**2, True)],
)
def test_losses_count_where_they_keep_renos_window_below_the_pipe(loss_share: float, lossy: bool) -> None:
    assert dataclasses.replace(CLEAN, loss_share=loss_share).lossy is lossy


def test_on_a_path_that_was_never_filled_any_loss_counts() -> None:
    assert PathFacts(None, 480e6, loss_share=1e-6).lossy
    assert not PathFacts(None, 480e6).lossy


@pytest.mark.parametrize(
    ("facts", "proposed"),
    [
        (CLEAN, ("none", "sender-side", "midway")),
        (LOSSY, ("none", "sender-side", "midway")),
        (dataclasses.replace(CLEAN, round_trip_ns=20e6), ("none", "midway")),
        (dataclasses.replace(CLEAN, receiver_share=0.04), ("none", "sender-side", "midway")),
        (dataclasses.replace(CLEAN, receiver_share=0.06), ("none", "sender-side", "midway", "receiver-side")),
    ],
)
def test_a_place_is_proposed_where_it_can_help(facts: PathFacts, proposed: tuple[str, ...]) -> None:
    assert propose(facts) == proposed


def test_the_variant_onward_is_made_for_what_is_behind_the_proxy() -> None:
    def onward(facts: PathFacts) -> str | None:
        return tables_of(["sender-side"], facts)[0].keys.get("variant")

    assert onward(LOSSY) == '"bbr"'
    assert onward(CLEAN) == '"hybla"'
    assert onward(dataclasses.replace(CLEAN, round_trip_ns=20e6)) is None
    assert "variant" not in tables_of(["midway"], LOSSY)[0].keys


def test_memory_is_the_peak_rate_times_the_delay_times_the_factor_for_losses() -> None:
    def memory(name: str, facts: PathFacts) -> str:
        return tables_of([name], facts)[0].keys["receive_buffer"]

    assert memory("midway", CLEAN) == '"480000 B"'
    assert memory("midway", LOSSY) == '"960000 B"'
    never_filled = PathFacts(None, 480e6, 1500, window_bytes=65535)
    assert memory("receiver-side", never_filled) == '"262140 B"'
    assert memory("midway", never_filled) == '"200 pkts"'


def test_auto_stands_for_the_proposals_among_other_choices() -> None:
    assert _chosen_proxies(Choice(proxies=("none", "auto", "snoop")), CLEAN) == (
        "none", "sender-side", "midway", "snoop",
    )  # fmt: skip
    assert _chosen_proxies(Choice(), CLEAN) == propose(CLEAN)


def _drafted(
    *proxies: str,
    changes: tuple[LinkChange, ...] = (),
    round_trip_ns: float = 480e6,
    rate: Value | None = Value(4e6, None, None, ""),  # noqa: B008 - frozen
) -> Scenario:
    draft = Draft(
        name="d", duration_ns=60_000_000_000, trace_file="channel.parquet", block_pkts=80,
        rate=rate, round_trip=Value(round_trip_ns, None, None, ""), queue=None,
        stack=Stack(1448, 52, 10, 6_000_000), input_name="flight.pcap", input_sha256="0" * 64, flow_id=1,
        variant="auto", variants=("newreno",), seeds=50, proxies=proxies, facts=LOSSY, changes=changes,
    )  # fmt: skip
    return parse_scenario(tomllib.loads(draft_scenario(draft)), "draft.toml", VARIANTS)


@pytest.mark.parametrize(
    ("proxies", "nodes"),
    [
        (("none", "midway"), ("relay",)),
        (("none", "relay", "snoop"), ("relay",)),
        (("none", "sender-side"), ("near", "relay")),
        (("receiver-side",), ("relay", "far")),
        (("none", "sender-side+receiver-side"), ("near", "relay", "far")),
    ],
)
def test_the_path_has_a_node_for_each_place_and_the_same_delay(
    proxies: tuple[str, ...], nodes: tuple[str, ...]
) -> None:
    change = LinkChange(30_000_000_000, round_trip_ns=240e6)
    scenario = _drafted(*proxies, changes=(change,))
    assert scenario.path == ("sender", *nodes, "receiver")
    assert scenario.compare.proxies == proxies
    second_hop_ns = (1448 + 52 + 52) * 8e9 / 4e6
    assert 2 * sum(link.delay for link in scenario.links) == pytest.approx(480e6 - second_hop_ns, abs=10)
    later = [next((c.delay for c in link.changes if c.delay is not None), link.delay) for link in scenario.links]
    assert 2 * sum(later) == pytest.approx(240e6 - second_hop_ns, abs=10)
    traced = scenario.links[scenario.traced_link]
    assert (traced.name, traced.rate) == ("uplink", 4e6)
    assert {link.name: link.rate for link in scenario.links if link.name in {"access", "egress"}} == dict.fromkeys(
        ["access"] * ("near" in nodes) + ["egress"] * ("far" in nodes)
    )


def test_the_second_hop_serialises_at_the_rate_that_a_change_gives() -> None:
    faster = _drafted("none", "sender-side", changes=(LinkChange(30_000_000_000, rate_bps=8e6),))
    later = [next((c.delay for c in link.changes if c.delay is not None), link.delay) for link in faster.links]
    second_hop_ns = (1448 + 52 + 52) * 8e9 / 8e6
    assert 2 * sum(later) == pytest.approx(480e6 - second_hop_ns, abs=10)


@pytest.mark.parametrize("rate", [Value(4e6, None, None, ""), None])
@pytest.mark.parametrize("round_trip_ns", [0.0, 1.0, 2e6, 480e6])
def test_each_link_of_a_path_that_is_all_serialisation_has_a_delay_or_a_rate(
    round_trip_ns: float, rate: Value | None
) -> None:
    # The engine refuses another one.
    shorter = LinkChange(30_000_000_000, round_trip_ns=3e5)
    scenario = _drafted("sender-side+receiver-side", round_trip_ns=round_trip_ns, rate=rate, changes=(shorter,))
    for link in scenario.links:
        assert link.rate or link.delay > 0
        assert link.rate or all(change.delay is None or change.delay > 0 for change in link.changes)


def test_a_draft_says_what_cannot_be_split_and_that_the_path_has_a_proxy() -> None:
    signs = {"another TTL": "100 of 100 answers"}
    assert about_proxies(_assumptions(None, proxied=False)) == []
    [not_split] = about_proxies(_assumptions(None, proxied=True))
    assert not_split.startswith("QUIC, and TCP inside IPsec, cannot be split")
    [already] = about_proxies(_proxied_already(signs, changed=False))
    assert already.startswith("The capture already went through a proxy: 100 of 100 answers.")
    assert list(_proxied_already(signs, changed=True)) == []
    assert list(_proxied_already({}, changed=False)) == []
