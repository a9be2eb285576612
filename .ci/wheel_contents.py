"""Compare the files of a wheel with what may be in it: `python .ci/wheel_contents.py WHEEL`."""

from __future__ import annotations

import re
import sys
import zipfile

ALLOWED = (
    r"hindflight/([a-z0-9_]+/)*[a-z0-9_]+\.py",
    r"hindflight/py\.typed",
    r"hindflight/_native\.(abi3\.so|pyi)",
    r"hindflight/reports/assets/[a-z0-9_.]+\.(css|j2|js)",
    r"hindflight/replay/papers/data/([a-z]+/)?[a-z0-9-]+\.toml",
    r"hindflight/toolkit/demo/[A-Za-z0-9_.-]+\.(xz|md)",
    r"hindflight-[0-9.]+\.dist-info/(METADATA|WHEEL|RECORD|top_level\.txt|entry_points\.txt|licenses/LICENSE)",
)
REQUIRED = ("hindflight/__init__.py", "hindflight/_native.abi3.so", "hindflight/py.typed", "hindflight/cli/app.py")
DEVELOPMENT = re.compile(r"hindflight/(.*/)?(tests|conftest|fixtures|validation|benches)\b")


def main(wheel: str) -> int:
    """Print what is wrong with the wheel; return the exit code."""
    names = zipfile.ZipFile(wheel).namelist()
    allowed = re.compile("|".join(f"(?:{pattern})" for pattern in ALLOWED))
    foreign = [name for name in names if not allowed.fullmatch(name) or DEVELOPMENT.match(name)]
    missing = [name for name in REQUIRED if name not in names]
    for name in foreign:
        print(f"{wheel}: {name} does not belong into the wheel")
    for name in missing:
        print(f"{wheel}: {name} is missing")
    if "-abi3-" not in wheel:
        print(f"{wheel}: the wheel is not abi3")
    return 1 if foreign or missing or "-abi3-" not in wheel else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
