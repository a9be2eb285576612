"""Signs of a proxy, from the TTLs of a flow's answers."""

import pyarrow as pa
import pytest

from hindflight.proxy_signs import proxy_signs
from hindflight.toolkit.captured_flow import Flow

SYN, RST, ACK = 2, 4, 16


def flow(ttls: list[int], flags: dict[int, int] | None = None) -> Flow:
    """A flow whose data receiver answered the SYN with the first of `ttls`, and then the data with the others."""
    numbers = range(len(ttls))
    segments = {
        "direction": ["b2a" for _ in numbers],
        "flags": [SYN | ACK, *((flags or {}).get(at, ACK) for at in numbers[1:])],
        "ack": [1, *(1000 * at for at in numbers[1:])],
        "ttl": ttls,
        "record": [10 + at for at in numbers],
        "t_ns": [1_000_000 * at for at in numbers],
    }
    row = {"data_direction": "a2b", "handshake_rtt_ns": None, "a2b_rtt_min_ns": None, "vantage": "sender"}
    return Flow(0, 1, row, {"segments": pa.table(segments)})


def test_another_host_answers_all_data() -> None:
    [sign] = proxy_signs(flow([55, *[63] * 100]), changed=False)
    assert (sign.name, sign.packets, sign.t_ns) == ("another TTL", (10, 11), 1_000_000)
    assert "100 of 100" in sign.evidence
    # A few strays do not hide it.
    [sign] = proxy_signs(flow([55, *[63] * 60, 55, 41, *[63] * 60]), changed=False)
    assert "120 of 122" in sign.evidence


@pytest.mark.parametrize(
    "ttls",
    [
        pytest.param([55, *[55] * 50, *[57] * 50], id="reroute at a handover"),
        pytest.param([55, *[55] * 3, *[57] * 200], id="early reroute"),
        pytest.param([55, *[57] * 5, *[55] * 50], id="reroute and back"),
        pytest.param([55, *[55] * 50, 57, *[55] * 50], id="one packet on another way"),
        pytest.param([55, *[52 + 2 * (at % 4) for at in range(100)]], id="several ways at once"),
        pytest.param([55, 57], id="too few"),
    ],
)
def test_another_way_is_no_proxy(ttls: list[int]) -> None:
    assert list(proxy_signs(flow(ttls), changed=False)) == []


def test_a_reset_that_somebody_injected_is_no_answer() -> None:
    injected = flow([55, *[55] * 40, 128], {41: RST | ACK})
    assert list(proxy_signs(injected, changed=False)) == []
    # Nor do resets hide a proxy: without them, three answers of four were too few.
    split = flow([55, *[63] * 4, 128, 128], {5: RST, 6: RST})
    assert [sign.name for sign in proxy_signs(split, changed=False)] == ["another TTL"]


def test_a_path_that_changed_explains_another_ttl() -> None:
    assert list(proxy_signs(flow([55, *[63] * 100]), changed=True)) == []
