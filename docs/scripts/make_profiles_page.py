"""Writes docs/profiles.md: what each stack profile sets, as the engine has it, with where the values come from.

`python -m docs.scripts.make_profiles_page` writes the page; a test compares it.
"""

from __future__ import annotations

from pathlib import Path

from hindflight.replay.scenario.profiles import PROFILES, Setting, settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "profiles.md"

INTRO = """# Stack profiles

    hindflight scenario profiles             # this list
    hindflight scenario profiles min_rto     # one key

`profile` of `[flow]` and `[[flows]]` names one, `rfc` unless given; every key below stands in the same table, overrides
what the profile has, and is listed in the report where it differs.

* `rfc`: as the RFCs recommend.
* `linux`: leans on Linux 6.x with its default sysctls. What no key says comes with it: cubic with Linux's constants and
  HyStart, reductions of cwnd in whole segments, Linux's recovery where SACK is off.
* `ns2`: ns-2.35, the simulator of the papers, packets counted. What no key says comes with it: the windows of its Reno
  agents, three SACK blocks, the recovery of its Reno, Newreno and Sack1.

Some variants fix a part themselves, whatever the profile: `reno`, `newreno`, `sack`, `fack`, `aerotcp`, `scps-tp` and
`supertcp` their recovery, `aerotcp` its timer, `freeze-tcp` the warning of outages.

Values are as a scenario writes them; `none` is where a key that is left out sets nothing, and cannot be written. `mss`
and `headers` follow `timestamps`, and under `ns2` `initial_ssthresh` follows `receive_buffer`.

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
