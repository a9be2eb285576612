"""Writes docs/profiles.md: the values that each stack profile sets in the engine, with their sources.

`python -m docs.scripts.make_profiles_page` writes the page; a test compares it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hindflight.replay.scenario.profiles import PROFILES, Setting, settings
from hindflight.replay.scenario.windows import WINDOWS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "profiles.md"

INTRO = """# Stack profiles

    hindflight scenario profiles             # this list
    hindflight scenario profiles min_rto     # one key

The key `profile` of `[flow]` and `[[flows]]` selects a profile; the default is `rfc`. The keys below go into the same
table. Each overrides the value of the profile, and the report lists those that differ.

* `rfc`: as the RFCs recommend.
* `linux`: Linux 6.x with its default sysctls. It also sets what has no key: cubic with Linux's constants and HyStart,
decreases of cwnd in whole segments, and Linux's recovery where SACK is off.
* `ns2`: ns-2.35, the simulator of the papers, which counts packets. It also sets what has no key: the windows of
  ns-2's Reno agents, three SACK blocks, and the recovery of its Reno, Newreno and Sack1. Variants that ns-2 runs as
  modules of Linux 2.6.22 under its agent TCP/Linux (`linux-reno`, `cubic`, `bic`, `compound`, `highspeed`, `htcp`,
  `hybla`, `illinois`, `scalable`, `vegas`, `veno`, `westwood-plus`, `yeah`) have the recovery and the timer of that
  agent ([ns2_tcp_linux](mechanisms.md#recovery-of-ns-2s-tcplinux)); `linux-reno`, `cubic`, `hybla` and
  `westwood-plus` also have the integer arithmetic of their modules.
* `windows`: `rfc` with what Microsoft publishes of Windows 10 and Windows Server 2019, see [Windows](#windows). Their
  default variant is `cubic`; that of older servers is `compound`.

Some variants determine a part themselves under every profile: `reno`, `newreno`, `sack`, `fack`, `aerotcp`, `scps-tp`
and `supertcp` their recovery, `aerotcp` its timer, `freeze-tcp` the warning of outages.

Values are written as in a scenario. `none` means that the key is not set; it cannot be written in a file. `mss` and
`headers` follow `timestamps`, and under `ns2` `initial_ssthresh` follows `receive_buffer`.

`python -m docs.scripts.make_profiles_page` writes this page from the code.

"""


WINDOWS_INTRO = """
## Windows

The profile `windows` differs from `rfc` in these keys. `retry_limit` counts timeouts here as everywhere, by their time
from `min_rto` on; Windows counts the retransmissions of a segment. The receive buffer grows by Linux's rule, because
Microsoft publishes only its limits.

| key | `windows` | source |
|---|---|---|
"""

NS2 = """
## ns-2's settings under the profile `ns2`

ns-2's names, its defaults in version 2.35, the key for the same, and what the profile sets. A dash: there is no key.
`window_` bounds the window and is the first ssthresh, so that `receive_buffer` sets both; in TCP/Linux it bounds the
increase of cwnd only.

"""

NS2_SETTINGS = (
    (
        "Agent/TCP tcpTick_",
        "0.01 s; 0.1 s in the releases of the papers; 1 ms under TCP/Linux",
        "clock_granularity",
        "",
    ),
    ("Agent/TCP minrto_", "0.2 s", "min_rto", ""),
    ("Agent/TCP maxrto_", "60 s", "max_rto", ""),
    ("Agent/TCP rtxcur_init_", "3 s", "initial_rto", ""),
    ("Agent/TCP window_", "20 packets", "receive_buffer", ""),
    ("Agent/TCP ssthresh_", "0: that of window_", "initial_ssthresh", ""),
    ("Agent/TCP windowInit_", "2 packets", "initial_window", ""),
    ("Agent/TCP packetSize_", "1000 octets of payload", "mss", ""),
    ("Agent/TCP tcpip_base_hdr_size_", "40 octets", "headers", ""),
    ("Agent/TCP syn_", "true", "handshake", ""),
    ("Agent/TCP delay_growth_", "true: a window of 1 until the first ACK", "", "as false"),
    ("Agent/TCP singledup_", "1", "limited_transmit", "but not in TCP/Linux"),
    ("Agent/TCP timestamps_", "false", "timestamps", "TCP/Linux takes the echo as its sample in any case"),
    ("Agent/TCP ts_option_size_", "10 octets", "headers", "give `headers` of 50 bytes for the same packets"),
    ("Agent/TCP ts_resetRTO_", "false", "", "as true under TCP/Linux, as false elsewhere"),
    ("Agent/TCP overhead_", "0: no random delay before a packet leaves", "", "as 0"),
    ("Agent/TCP maxburst_", "0: no limit", "", "as 0"),
    ("Agent/TCP ecn_", "0", "ecn", ""),
    ("Agent/TCPSink maxSackBlocks_", "3", "", "as 3"),
    ("Agent/TCPSink generateDSacks_", "false", "dsack", ""),
    ("Agent/TCPSink ts_echo_rfc1323_", "false", "", "as true"),
    ("Agent/TCPSink/DelAck", "not used unless chosen", "delayed_ack", ""),
    ("Agent/TCPSink/DelAck interval_", "100 ms", "delayed_ack_timeout", ""),
)
"""Name, default, our key, and what the profile does where the value of the key does not show it."""


def page() -> str:
    """Return the whole page."""
    names = " | ".join(f"`{profile}`" for profile in PROFILES)
    head = f"| key | {names} | may be | what it is | source |\n|{'---|' * (len(PROFILES) + 4)}\n"
    every = settings()
    keys = head + "".join(f"{_line(setting)}\n" for setting in every)
    return INTRO + keys + _windows() + NS2 + _ns2_table({setting.key: setting.values["ns2"] for setting in every})


def _windows() -> str:
    """Return what the profile `windows` sets, with the source of each value."""
    lines = [
        f"| `{key}` | {str(value).lower() if isinstance(value, bool) else value} | {source} |\n"
        for key, (value, source) in WINDOWS.items()
    ]
    return WINDOWS_INTRO + "".join(lines)


def _ns2_table(values: Mapping[str, str]) -> str:
    head = "| ns-2 | default of ns-2 | key | profile `ns2` |\n|---|---|---|---|\n"
    lines = []
    for name, default, key, more in NS2_SETTINGS:
        setting = "; ".join(part for part in (values[key] if key else "", more) if part)
        lines.append(f"| `{name}` | {default} | {f'`{key}`' if key else '-'} | {setting} |\n")
    return head + "".join(lines)


def _line(setting: Setting) -> str:
    values = " | ".join(setting.values.values())
    return f"| `{setting.key}` | {values} | {setting.allowed} | {setting.meaning} | {setting.source} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
