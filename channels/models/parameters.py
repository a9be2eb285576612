"""Common parts of model parameters: quantities with units, probabilities, one-line errors.

See docs/channels/synth.md.
"""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails

from hindflight.toolkit.errors import ChannelError, MachineError, did_you_mean
from hindflight.toolkit.text import name_from_text, name_to_text
from hindflight.toolkit.units import FREQUENCY, LENGTH, RATE, SPEED, TIME, Quantity, quantity_of

LONGEST_NS = 30 * 86_400 * 10**9
"""Maximum duration of a channel, a state or a scenario: 30 days, as in the engine. More is probably a wrong unit."""

BOUNDS = {
    "greater_than_equal": "at least",
    "greater_than": "more than",
    "less_than_equal": "at most",
    "less_than": "less than",
}
"""Types of pydantic's range errors, and the words for the violated bound."""


def _number(quantity: Quantity) -> BeforeValidator:
    return BeforeValidator(quantity.parse)


def _whole(quantity: Quantity) -> BeforeValidator:
    return BeforeValidator(partial(_parse_whole, quantity))


def _parse_whole(quantity: Quantity, text: object) -> int:
    return round(quantity.parse(text))


Rate = Annotated[float, _number(RATE), Field(ge=8, le=1e13)]
Time = Annotated[int, _whole(TIME), Field(le=LONGEST_NS)]
Stay = Annotated[int, _whole(TIME), Field(ge=1, le=LONGEST_NS)]
Metres = Annotated[float, _number(LENGTH), Field(le=1e9)]
Speed = Annotated[float, _number(SPEED), Field(le=1e5)]
Frequency = Annotated[float, _number(FREQUENCY), Field(ge=1e6, le=1e12)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Real = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Decibels = Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False, strict=True)]
Gain = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False, strict=True)]
"""Non-negative decibels."""
Depth = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False, strict=True)]
"""Positive decibels."""
Grain = Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False, strict=True)]
"""Step between levels of a signal in decibels."""
Degrees = Annotated[float, Field(ge=-360, le=360, allow_inf_nan=False, strict=True)]
Latitude = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False, strict=True)]
Longitude = Annotated[float, Field(ge=-180, le=360, allow_inf_nan=False, strict=True)]


class Parameters(BaseModel):
    """A table of parameters; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, defer_build=True)


class FileName(str):
    """The path of an input file that a parameter file names."""


def _relative_path(path: str, info: ValidationInfo) -> FileName:
    return FileName(Path((info.context or {}).get("folder", ".")) / name_from_text(path))


def input_files(model: BaseModel) -> list[Path]:
    """Return the files that a model and its parts name."""
    found: list[Path] = []
    for _, value in model:
        if isinstance(value, FileName):
            found.append(Path(value))
        elif isinstance(value, BaseModel):
            found += input_files(value)
    return found


InputFile = Annotated[str, AfterValidator(_relative_path), PlainSerializer(name_to_text)]
"""The name of a file in a parameter file, relative to that file; a `file:` URI if the name is not UTF-8."""


def parse(kind: Any, data: object, where: str, folder: Path = Path()) -> Any:
    """Return `data` validated as `kind`, a model or a union; files in it are relative to `folder`.

    Raises ChannelError with `where`, the key, and the allowed values.
    """
    adapter = TypeAdapter(kind)
    try:
        return adapter.validate_python(data, context={"folder": str(folder)})
    except ValidationError as error:
        raise ChannelError(f"{where}: {describe(error)}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the contents of a TOML file. Raises ChannelError or MachineError in one line."""
    try:
        return tomllib.loads(path.read_bytes().decode())
    except (FileNotFoundError, IsADirectoryError):
        raise ChannelError(f"{path}: there is no such file") from None
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}") from error
    except ValueError as error:  # Not text, not TOML, or a number of thousands of digits.
        raise ChannelError(f"{path}: not a TOML file: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ChannelError(f"{path}: not a TOML file: its arrays are nested too deeply") from None


def read_text(path: Path) -> str:
    """Return the contents of a text file. Raises ChannelError in one line."""
    try:
        return path.read_text()
    except OSError as error:
        raise ChannelError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ChannelError(f"{path}: is not a text file") from None


def describe(error: ValidationError) -> str:
    """Return the most telling of the errors in one line: a misspelt key before the key that it leaves missing."""
    errors = sorted(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    first = errors[0]
    message = first["msg"].removeprefix("Value error, ")
    match first["type"]:
        case "extra_forbidden":
            message = "unknown key"
        case "missing":
            message = "this key is missing"
        case kind if kind in BOUNDS:
            words, bound = violated_bound(first)
            quantity = quantity_of(first["input"]) if isinstance(first["input"], str) else None
            limit = quantity.write(bound) if quantity is not None else f"{bound:g}"
            message = f"{first['input']!r} is out of range; {words} {limit}"
        case "finite_number":
            message = f"{first['input']!r} is not a finite number"
        case "literal_error":
            message = f"{first['input']!r} is not allowed; allowed: {first['ctx']['expected']}"
        case "union_tag_invalid" | "union_tag_not_found":
            message = model_error(first)
    path = _key_path(first["loc"])
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{path + ': ' if path else ''}{message}{more}"


def model_error(error: ErrorDetails) -> str:
    """Return the description of an unknown or missing model name."""
    if error["type"] == "union_tag_not_found":
        return "a model is missing"
    if not isinstance(error["input"].get("model"), str):
        return 'model is the name of one, as in model = "street"'
    context = error["ctx"]
    known = [name.strip(" '") for name in str(context["expected_tags"]).split(",")]
    guess = did_you_mean(str(context["tag"]), known, lead="; ")
    return f"no model {context['tag']!r}{guess}; there are {', '.join(known)}"


def violated_bound(error: ErrorDetails) -> tuple[str, float]:
    """Return the words for a violated bound, and the bound, of an error whose type is one of `BOUNDS`."""
    (bound,) = error["ctx"].values()
    return BOUNDS[error["type"]], bound


def _key_path(loc: tuple[int | str, ...]) -> str:
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
