"""Writes docs/profiles.md: the values that each stack profile sets in the engine, with their sources.

`python -m docs.scripts.make_profiles_page` writes the page; a test compares it.
"""

from __future__ import annotations

from pathlib import Path

from hindflight.replay.scenario.profiles import PROFILES, Setting, settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "profiles.md"

INTRO = """# Stack profiles

    hindflight scenario profiles             # this list
    hindflight scenario profiles min_rto     # one key

The key `profile` of `[flow]` and `[[flows]]` selects a profile; the default is `rfc`. The keys below go into the same
table. Each overrides the value of the profile, and the report lists those that differ.

* `rfc`: as the RFCs recommend.
* `linux`: Linux 6.x with its default sysctls. It also sets what has no key: cubic with Linux's constants and HyStart,
  reductions of cwnd in whole segments, and Linux's recovery where SACK is off.
* `ns2`: ns-2.35, the simulator of the papers, which counts packets. It also sets what has no key: the windows of ns-2's
  Reno agents, three SACK blocks, and the recovery of its Reno, Newreno and Sack1.

Some variants determine a part themselves under every profile: `reno`, `newreno`, `sack`, `fack`, `aerotcp`, `scps-tp`
and `supertcp` their recovery, `aerotcp` its timer, `freeze-tcp` the warning of outages.

Values are written as in a scenario. `none` means that the key is not set; it cannot be written in a file. `mss` and
`headers` follow `timestamps`, and under `ns2` `initial_ssthresh` follows `receive_buffer`.

`python -m docs.scripts.make_profiles_page` writes this page from the code.

"""


def page() -> str:
    """Return the whole page."""
    names = " | ".join(f"`{profile}`" for profile in PROFILES)
    head = f"| key | {names} | may be | what it is | source |\n|{'---|' * (len(PROFILES) + 4)}\n"
    return INTRO + head + "".join(f"{_line(setting)}\n" for setting in settings())


def _line(setting: Setting) -> str:
    values = " | ".join(setting.values.values())
    return f"| `{setting.key}` | {values} | {setting.allowed} | {setting.meaning} | {setting.source} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
