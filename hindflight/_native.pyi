"""The native core's surface. Every name here is in the extension, and the other way round (tests/toolkit)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol, final

__all__ = [
    "Ack",
    "CaptureReader",
    "Columns",
    "Congestion",
    "FadeWalk",
    "FlowRows",
    "LossStream",
    "Parameter",
    "StateWalk",
    "StreetCanyon",
    "StreetWalk",
    "TcptraceRows",
    "Variant",
    "WiresharkRows",
    "acos",
    "atan2",
    "check",
    "cos",
    "draw_street",
    "erfc",
    "exp",
    "fit_losses",
    "log",
    "log10",
    "loss_models",
    "loss_shape",
    "normal_numbers",
    "pcapng_head",
    "pcapng_packets",
    "pow",
    "profile",
    "replay",
    "replay_batches",
    "replay_controller",
    "sin",
    "variants",
]

class _ArrowArray(Protocol):
    """An array behind the Arrow PyCapsule interface, as `pyarrow.Array`."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

@final
class Ack:
    """What a user's controller learns from an ACK."""

    @property
    def now_s(self) -> float: ...
    @property
    def delivered_pkts(self) -> int: ...
    @property
    def acked_bytes(self) -> int: ...
    @property
    def rtt_s(self) -> float | None: ...
    @property
    def srtt_s(self) -> float | None: ...
    @property
    def min_rtt_s(self) -> float | None: ...
    @property
    def snd_una(self) -> int: ...
    @property
    def snd_nxt(self) -> int: ...
    @property
    def flight_pkts(self) -> int: ...
    @property
    def prior_flight_pkts(self) -> int: ...
    @property
    def newly_lost_pkts(self) -> int: ...
    @property
    def delivered_total_pkts(self) -> int: ...
    @property
    def delivery_rate_pkts_per_s(self) -> float | None: ...
    @property
    def prior_delivered_pkts(self) -> int | None: ...
    @property
    def app_limited(self) -> bool: ...
    @property
    def lost_pkts(self) -> int: ...
    @property
    def recovery_phase(self) -> str: ...
    @property
    def cwnd_limited(self) -> bool: ...
    @property
    def ecn_echo(self) -> bool: ...

@final
class Congestion:
    """Why a user's controller is to reduce its window; `kind`: loss, ecn_echo, timeout, repeated_timeout."""

    @property
    def now_s(self) -> float: ...
    @property
    def flight_pkts(self) -> float: ...
    @property
    def lost_pkts(self) -> int: ...
    @property
    def kind(self) -> str: ...

@final
class CaptureReader:
    """Reads one capture, or several files merged: segments in batches, all other tables as far as they are certain.

    ValueError with a sentence, a hint and the index of the path where a file is no capture, OSError where the system
    refuses.
    """

    def __new__(
        cls,
        paths: Sequence[str | PathLike[str]],
        *,
        first_flow_id: int,
        input_ids: Sequence[int],
        from_ns: int | None = None,
        to_ns: int | None = None,
        outer: bool = False,
        fix_clock: bool = False,
    ) -> CaptureReader: ...
    def read_batch(self, max_rows: int) -> Columns | None: ...
    def flows(self) -> Columns: ...
    def events(self) -> Columns: ...
    def instruments(self) -> Columns: ...
    def others(self) -> Columns: ...
    def issues(self) -> Columns: ...
    def summary(self) -> dict[str, Any]: ...
    def progress(self) -> tuple[int, int]: ...
    def sha256(self) -> str | None: ...

@final
class TcptraceRows:
    """Reads a capture, of one file or several merged, and counts as tcptrace does: rows of CSV, or JSON objects with
    commas between them. `issues` gives the number of the file, from 0, the record, the offset and a sentence.

    ValueError with a sentence and a hint where the file is no capture, OSError where the system refuses.
    """

    def __new__(
        cls,
        paths: Sequence[str | PathLike[str]],
        *,
        json: bool,
        from_ns: int | None = None,
        to_ns: int | None = None,
        outer: bool = False,
    ) -> TcptraceRows: ...
    def read(self) -> bytes | None: ...
    def issues(self) -> list[tuple[int, int, int, str]]: ...

@final
class FlowRows:
    """Reads a capture and follows its connections: the table `flows`, rows and errors as those of TcptraceRows.

    `totals` gives the number of flows and the time of the first segment in ns, once the first row has come.
    """

    def __new__(cls, paths: Sequence[str | PathLike[str]], *, json: bool, outer: bool = False) -> FlowRows: ...
    def read(self) -> bytes | None: ...
    def totals(self) -> tuple[int, int | None]: ...
    def issues(self) -> list[tuple[int, int, int, str]]: ...

@final
class WiresharkRows:
    """Reads a capture and analyses its segments as Wireshark does: rows and errors as those of TcptraceRows."""

    def __new__(cls, paths: Sequence[str | PathLike[str]], *, json: bool) -> WiresharkRows: ...
    def read(self) -> bytes | None: ...
    def issues(self) -> list[tuple[int, int, int, str]]: ...

@final
class Columns:
    """A batch of named columns behind the Arrow C data interface: `pyarrow.table(columns)` takes it."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

def check(
    configurations: Sequence[str],
    controllers: Mapping[str, Callable[[float, float], object]] | None = None,
    arrays: Sequence[_ArrowArray] | None = None,
) -> list[tuple[int, str]]:
    """Return what `replay` would refuse: the number (from 0) of the configuration, and the error as JSON.

    Where all are sound, the options that have no effect in any of them. The JSON has `path`, `kind` and, where the kind
    has any, `fields`: see `replay/engine/src/config/error.rs`.
    """

def fit_losses(sequence: bytes, models: Sequence[str], level: float, t_ns: bytes | None = None) -> list[dict[str, Any]]:
    """Fit loss models to a loss sequence, one octet per packet, 0 for delivered; a dictionary per model.

    `t_ns` are the packets' times, eight octets each, for the model in time.

    `parameters` are (name, value, standard error or None, low, high), `tests` (name, chi-square, degrees of freedom,
    p-value or None, worst bin or None as (from, to, expected, observed, deviation)); `gap_longer`, `burst_longer` and
    `autocorrelation` are what the model expects at the lengths and lags of `loss_shape`. ValueError: unknown model,
    or a level that does not lie between 0 and 1.
    """

def loss_models() -> list[tuple[str, list[str]]]:
    """List the models that can be fitted, the simplest first, each with its parameters."""

def loss_shape(sequence: bytes) -> dict[str, Any]:
    """Count runs of losses (`burst_*`) and deliveries (`gap_*`) of a loss sequence; its autocorrelation at `lags`."""

def pcapng_head(application: str, comment: str) -> bytes:
    """Return the head of a pcapng file: one Ethernet interface, times in ns."""

def pcapng_packets(rows: _ArrowArray) -> bytes:
    """Encode the packets of a record batch, headers alone: columns of `segments`, and `src`, `dst` (4 or 16 octets),
    `src_port`, `dst_port`, `comment`. ValueError: a capture cannot represent one of them; its number and why.
    """

def replay(
    jobs: Sequence[tuple[str, int, int, bool]],
    *,
    threads: int,
    segments: bool = True,
    samples: int | None = None,
    transfer_ns: int | None = None,
    captures: str | PathLike[str] | None = None,
    controllers: Mapping[str, Callable[[float, float], object]] | None = None,
    arrays: Sequence[_ArrowArray] | None = None,
) -> dict[str, list[Columns]]:
    """Run jobs of (configuration, seed, run_id, recorded) over `threads` threads.

    A configuration is a JSON text: an object of `config` (`Config` of replay/engine/src/config) and `arrays`, key paths
    such as `path.links.0.forward.loss.positions` to indices into `arrays`. Where such a path leads, `config` has an
    empty list, and the engine gets the Arrow array: positions, late (position, added_ns), spans (start_ns, per, ber) of
    a loss process, schedule of a direction, starts_ns and rates_bps of a rate trace, delays_ns of a jitter, at_ns and
    bytes of an application.

    Returns batches of the tables `runs` (a row per job and flow, only the columns that the engine knows), `segments`,
    `flows`, `events` and `instruments` (of recorded jobs), in the order of the jobs whatever the number of threads.
    Without `segments`, recorded jobs give `instruments` alone: every state of every leg's sender; with `samples`, of
    each of so many even intervals the first one (where nothing changes for a while, the one that holds), and the last,
    so that memory does not grow with the length of a run.
    With `transfer_ns`, recorded jobs give for so long from their first data segment on one row of `transfers` (run_id,
    start_ns, acked_bytes, retransmissions, rtos) and a batch of `windows` (cwnd_bytes, a row per data segment) of the
    first flow, and no other series.
    With `captures`, a folder, recorded jobs also write `RUN-NODE.pcap` there for every node where connections end:
    nanoseconds, headers alone. OSError where the system refuses; ValueError where the headers of a flow are so long or
    short that no capture can hold its segments.
    Equal seeds give equal bytes. ValueError names the key path of the first value that makes no sense, before anything
    runs. KeyboardInterrupt stops all threads.
    A flow whose variant is `external:NAME` gets what `controllers[NAME]` returns for cwnd and ssthresh: an object with
    the methods of `hindflight.replay.controllers.base.Controller`; what it raises ends all runs and is raised here.
    """

def replay_batches(
    batches: Iterator[tuple[Sequence[tuple[str, int, int, bool]], Sequence[_ArrowArray]]],
    done: Callable[[dict[str, list[Columns]]], object],
    *,
    threads: int,
    segments: bool = True,
    samples: int | None = None,
    captures: str | PathLike[str] | None = None,
    controllers: Mapping[str, Callable[[float, float], object]] | None = None,
) -> None:
    """Run batches of jobs, each with its arrays, and call `done` with the tables of each, in the order of the batches.

    Jobs, arrays, options, tables and errors are those of `replay`, but a configuration is refused when its batch is
    taken from `batches`, while the one before it runs. What `batches` or `done` raises ends all runs.
    """

def replay_controller(
    configuration: str,
    flow: int,
    record: Sequence[tuple[int, str, int, int, int, list[tuple[int, int]]]],
    arrays: Sequence[_ArrowArray] | None = None,
) -> Columns:
    """Replay `record`, in order of time, with the sender of flow number `flow` of a configuration (as for `replay`).

    An event is its time in ns, its kind (syn, data, timeout, syn_ack, ack), an octet (the first sent, or the next
    expected), a size (octets sent, or the window), the time that an ACK echoes in ms of the same clock, and its SACK
    blocks. Returns the state after each: cwnd_pkts, ssthresh_pkts, in_recovery, outstanding_pkts, sacked_pkts,
    lost_pkts, retransmitted_pkts. ValueError where the configuration makes no sense or the record leaves octets out.
    """

def profile(name: str) -> str:
    """Return the stack parameters that a profile fixes, as JSON by the engine's names; ValueError if unknown."""

@final
class Parameter:
    """A parameter of a variant; all values as text."""

    @property
    def name(self) -> str: ...
    @property
    def default(self) -> str: ...
    @property
    def allowed(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def meaning(self) -> str: ...

@final
class Variant:
    """A TCP variant: `profiles` are those under which it has its parameters; others call it by `other_names`."""

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def year(self) -> int: ...
    @property
    def parameters(self) -> list[Parameter]: ...
    @property
    def profiles(self) -> list[str]: ...
    @property
    def needs_forecast(self) -> bool: ...
    @property
    def other_names(self) -> list[str]: ...

def variants() -> list[Variant]:
    """List the TCP variants."""

@final
class FadeWalk:
    """Fading of a signal in the states of a chain (a `LossConfig` of kind chain as JSON), in order of time.

    `signals`: per state mean and standard deviation in dB of the direct part (None if there is none) and of the
        multipath. `pace`: Doppler in Hz, shadowing and step in ns, number of steps, dB per level.
    """

    def __new__(
        cls,
        chain: str,
        signals: Sequence[tuple[float | None, float, float, float]],
        pace: tuple[float, float, int, int, float],
        *,
        seed: int,
        owner: int = 0,
    ) -> FadeWalk: ...
    def read(self, max_rows: int) -> Columns | None:
        """The next runs of equal state and level: start_ns, end_ns, state, level; None at the end."""

@final
class LossStream:
    """A loss process (`LossConfig` of replay/engine/src/config/loss.rs as JSON) and the packets that it has seen.

    ValueError names what makes no sense.
    """

    def __new__(
        cls, loss: str, *, seed: int, owner: int = 0, direction: int = 0, known_until_ns: int = 2**64 - 1
    ) -> LossStream:
        """The spans of its timeline are complete up to `known_until_ns`; `extend` adds later ones."""
    def extend(self, timeline: str, known_until_ns: int) -> None:
        """Add later spans, by a `LossConfig` of kind timeline, which is then complete up to `known_until_ns`."""
    def read(self, packets: int, size_bytes: int, spacing_ns: int) -> Columns:
        """Offer packets, `spacing_ns` apart; column `position` of the lost ones, from the first packet of all."""
    def outcomes(self, packets: int, size_bytes: int, spacing_ns: int) -> Columns:
        """Offer packets, `spacing_ns` apart, as far as the spans are known; a row for each.

        Columns `lost`, and `added_ns` to the delay of the others.
        """

@final
class StateWalk:
    """The states of a chain (a `LossConfig` of kind chain as JSON), one after the other."""

    def __new__(cls, chain: str, *, seed: int, owner: int = 0, direction: int = 0) -> StateWalk: ...
    def read(self, rows: int) -> Columns:
        """Columns `state` and `stay` (packets or ns, by the chain's clock)."""

def draw_street(
    params: dict[str, Any], seed: int, owner: int
) -> tuple[float, tuple[float, float], list[tuple[float, float, float]], list[tuple[float, float, float]]]:
    """Draw a street: length, distances of the route to the left and right facades, buildings of both sides.

    Buildings are start, end and height; all in metres. `params` has length_m, lateral, and the laws height, facade,
    width, block (or None) and crossing, each a name with two parameters.
    """

@final
class StreetCanyon:
    """A street with an antenna in it. Azimuths are radians from the direction of travel, clockwise."""

    def __new__(
        cls,
        street: tuple[float, tuple[float, float], list[tuple[float, float, float]], list[tuple[float, float, float]]],
        *,
        antenna_m: float,
        depth_m: float,
    ) -> StreetCanyon: ...
    def blocked(self, places_m: Sequence[float], phi: float, elevation: float) -> list[bool]: ...
    def masks(self, place_m: float, azimuths: Sequence[float]) -> list[float]: ...
    def diffraction_db(
        self, places_m: Sequence[float], phi: float, elevation: float, wavelength_m: float
    ) -> list[float]: ...
    def walk(
        self,
        pace: tuple[float, float, int, int],
        sky: Sequence[tuple[int, float, float]],
        knife: tuple[float, float] | None = None,
    ) -> StreetWalk: ...

@final
class StreetWalk:
    """What a terminal sees that goes along a street, in order of time."""

    def read(self, max_rows: int) -> Columns | None:
        """The next runs of equal level: start_ns, end_ns, level, set (satellite below the horizon); None at the end."""

def normal_numbers(rows: int, *, seed: int, owner: int = 0, direction: int = 0) -> Columns:
    """Column `normal`: standard normal numbers, equal on every machine for equal seeds."""

def exp(x: float) -> float:
    """Return e to the power of x; like all of these with the same bits on every machine."""

def log(x: float) -> float:
    """Return the natural logarithm; NaN below 0, minus infinity at 0."""

def log10(x: float) -> float:
    """Return the logarithm to the base of 10; NaN below 0, minus infinity at 0."""

def pow(x: float, y: float) -> float:  # noqa: A001
    """Return x to the power of y."""

def erfc(x: float) -> float:
    """Return the complementary error function."""

def sin(x: float) -> float:
    """Return the sine."""

def cos(x: float) -> float:
    """Return the cosine."""

def acos(x: float) -> float:
    """Return the arc cosine; NaN outside of -1 to 1."""

def atan2(y: float, x: float) -> float:
    """Return the angle of the point (x, y)."""
