"""Records runs of two Linux stacks joined by a relay of two sockets: namespaces, two emulated links, three processes.

Needs root, iproute2, ethtool, gcc and the link emulator `linkemu.c` of the testbed. Makes `DIR/NAME.SEED/leg0` and
`leg1`, each in the form of a recorded run of one connection, and `DIR/NAME.SEED/relay.json`.
"""

from __future__ import annotations

import json
import lzma
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path as Folder
from typing import Any

from hindflight.toolkit.errors import LogError
from validation.relay.links import Leg, Path

EMULATOR = Folder(__file__).resolve().parents[3] / "shared" / "testbed" / "linkemu.c"
"""Where the testbed lies beside a checkout."""
ENDS = Folder(__file__).with_name("ends.py")
TOOLS = {"ip": "iproute2", "ethtool": "ethtool", "gcc": "gcc"}
LEAD_NS = 300_000_000
"""From the moment when every process is ready to the first SYN."""
GRACE_S = 20.0
ADDRESSES = (("10.78.0.1", "10.78.0.2"), ("10.78.1.1", "10.78.1.2"))
"""Of the two ends of each leg."""
PORTS = ((40_001, 5001), (40_002, 5002))
SYSCTLS = (
    "tcp_rmem",
    "tcp_wmem",
    "tcp_sack",
    "tcp_timestamps",
    "tcp_recovery",
    "tcp_limit_output_bytes",
    "tcp_moderate_rcvbuf",
)
ACK_QUEUE_PKTS = 1000


def missing(emulator: Folder = EMULATOR) -> str | None:
    """Return what this machine lacks for a recording, in one line; None if nothing."""
    if os.geteuid() != 0:
        return "recording makes network namespaces and needs root"
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            return f"recording needs {tool} (Debian: apt-get install {package})"
    if not emulator.is_file():
        return f"recording needs the link emulator; {emulator} does not exist (--emulator)"
    name = f"hf{os.getpid()}try"
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "netns", "del", name)
    except LogError as error:
        return f"this machine makes no network namespaces: {error.message}"
    return None


def record(
    paths: list[tuple[Path, int]],
    out: Folder,
    emulator: Folder = EMULATOR,
    on_done: Callable[[int], None] = lambda _: None,
) -> list[Folder]:
    """Record each path with its seed of losses; return the folders. LogError if a run fails or is there already."""
    made = []
    for path, seed in paths:
        folder = out / f"{path.name}.{seed}"
        if folder.exists():
            raise LogError(f"{folder} exists already", "give another folder: nothing is recorded over it")
    with tempfile.TemporaryDirectory(prefix="hf-relay-") as scratch:
        program = Folder(scratch, "linkemu")
        _run("gcc", "-O2", "-o", str(program), str(emulator))
        for done, (path, seed) in enumerate(paths, 1):
            folder = out / f"{path.name}.{seed}"
            work = Folder(scratch, folder.name)
            work.mkdir()
            _record_one(path, seed, work, folder, program)
            shutil.rmtree(work)
            made.append(folder)
            on_done(done)
    return made


def _record_one(path: Path, seed: int, work: Folder, folder: Folder, program: Folder) -> None:
    tag = f"hf{os.getpid()}"
    with ExitStack() as undo:
        names = {role: f"{tag}{role}" for role in ("send", "relay", "receive", "link")}
        undo.enter_context(_namespaces(names))
        links = [
            _start(names["link"], [str(program), *_emulator(leg, at, seed, path.duration_s, work)], undo)
            for at, leg in enumerate(path.legs)
        ]
        for link in links:
            _await(link)
        ends = [_end(role, path, names[role], work, undo) for role in ("receive", "relay", "send")]
        for process in ends:
            _await(process)
        begin_ns = time.time_ns() + LEAD_NS
        span = begin_ns, begin_ns + path.duration_s * 1_000_000_000
        for process in ends:
            _pipe(process.stdin).write(f"{span[0]} {span[1]}\n")
            _pipe(process.stdin).flush()
        received, relayed, sent = (json.loads(_finished(process, path.duration_s)) for process in ends)
        for link in links:
            link.terminate()
        t0_ns = [int(_finished(link, 0).split()[1]) for link in links]
        sysctl = {
            name: _run("ip", "netns", "exec", names["relay"], "sysctl", "-n", f"net.ipv4.{name}") for name in SYSCTLS
        }
    span_ns = span[1] - sent["t_start_ns"]
    goodput_kbps = received["octets"] * 8e6 / span_ns
    for at, (leg, reported) in enumerate(zip(path.legs, (sent, relayed), strict=True)):
        flow = {
            **{key: reported[key] for key in ("cc", "t_syn_ns", "t_start_ns", "snd_mss", "retransmits", "rto_count")},
            **{key: reported[key] for key in ("samples", "late_samples")},
            "sport": PORTS[at][0],
            "dport": PORTS[at][1],
            "t_end_ns": span[1],
            "goodput_kbps": goodput_kbps,
            "tcpinfo": "tcpinfo.csv.xz",
        }
        run = {"scenario": folder.name, "params": leg.params(), "t0_ns": t0_ns[0], "link_t0_ns": t0_ns[at]}
        known = {**run, "sysctl": sysctl, "kernel": platform.release(), "flows": [flow]}
        target = folder / f"leg{at}"
        target.mkdir(parents=True)
        for name in ("link.csv", "tcpinfo.csv"):
            with lzma.open(target / f"{name}.xz", "wb") as file:
                file.write((work / f"leg{at}-{name}").read_bytes())
        (target / "scenario.json").write_text(json.dumps(known, indent=1))
    reported = {key: relayed[key] for key in ("first", "pipe_max_bytes")}
    whole = {"path": asdict(path), "seed": seed, "buffers": path.buffers, "octets": received["octets"], **reported}
    (folder / "relay.json").write_text(json.dumps(whole, indent=1))


def _emulator(leg: Leg, at: int, seed: int, duration_s: int, work: Folder) -> list[str]:
    return [
        f"a{at}",
        f"b{at}",
        f"log={work}/leg{at}-link.csv",
        f"dur={duration_s + 60}",
        f"rate={leg.rate_bps:.0f}",
        f"delay_ms={leg.rtt_ms / 2}",
        f"queue={leg.queue_pkts}",
        f"rqueue={ACK_QUEUE_PKTS}",
        f"loss={leg.loss}",
        f"seed={seed * 1009 + at}",
        "rt=1",
        *(f"event={at_s}:{what}={value:.0f}" for at_s, what, value in leg.events),
    ]


def _end(role: str, path: Path, namespace: str, work: Folder, undo: ExitStack) -> subprocess.Popen[str]:
    (sender, relay_in), (relay_out, receiver) = ADDRESSES
    (sport, dport), (onward_sport, onward_dport) = PORTS
    onward = {"source": relay_out, "sport": onward_sport, "to": receiver, "dport": onward_dport}
    tasks: dict[str, dict[str, Any]] = {
        "send": {"source": sender, "sport": sport, "to": relay_in, "dport": dport, "variant": path.legs[0].variant},
        "relay": {"at": relay_in, "listen": dport, **onward, "variant": path.legs[1].variant, **path.buffers},
        "receive": {"at": receiver, "listen": onward_dport},
    }
    csv = f"{work}/leg{0 if role == 'send' else 1}-tcpinfo.csv"
    task = json.dumps({"role": role, "csv": csv, **tasks[role]})
    return _start(namespace, [sys.executable, "-E", "-S", str(ENDS), task], undo)


@contextmanager
def _namespaces(names: dict[str, str]) -> Iterator[None]:
    """Three hosts, and one namespace in which both emulators join their interfaces."""
    try:
        for name in names.values():
            _run("ip", "netns", "add", name)
            _run(
                "ip",
                "netns",
                "exec",
                name,
                "sysctl",
                "-qw",
                "net.ipv6.conf.all.disable_ipv6=1",
                "net.ipv4.tcp_no_metrics_save=1",
            )
        hosts = (("send", "relay"), ("relay", "receive"))
        for at, pair in enumerate(hosts):
            for side, role in enumerate(pair):
                _wire(names, role, f"e{at}", f"{'ab'[side]}{at}", ADDRESSES[at][side], f"02:00:00:00:0{at}:0{side}")
            for side, role in enumerate(pair):
                other = f"02:00:00:00:0{at}:0{1 - side}"
                _run(
                    "ip",
                    "-n",
                    names[role],
                    "neigh",
                    "replace",
                    ADDRESSES[at][1 - side],
                    "lladdr",
                    other,
                    "dev",
                    f"e{at}",
                    "nud",
                    "permanent",
                )
        time.sleep(0.5)
        yield
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _wire(names: dict[str, str], role: str, device: str, peer: str, address: str, mac: str) -> None:
    host, link = names[role], names["link"]
    _run("ip", "link", "add", device, "netns", host, "type", "veth", "peer", "name", peer, "netns", link)
    _run("ip", "-n", host, "link", "set", device, "address", mac)
    for namespace, one in ((host, device), (link, peer)):
        off = [word for feature in ("tso", "gso", "gro", "tx", "rx", "sg") for word in (feature, "off")]
        subprocess.run(["ip", "netns", "exec", namespace, "ethtool", "-K", one, *off], capture_output=True, check=False)
        # One CPU: frames that two of them send may overtake each other.
        queue = f"/sys/class/net/{one}/queues/rx-0/rps_cpus"
        _run("ip", "netns", "exec", namespace, "sh", "-c", f"echo 1 > {queue}")
        _run("ip", "-n", namespace, "link", "set", one, "up")
    _run("ip", "-n", host, "addr", "add", f"{address}/24", "dev", device)


def _start(namespace: str, command: list[str], undo: ExitStack) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        ["ip", "netns", "exec", namespace, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    undo.callback(_stop, process)
    return process


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
    process.communicate()


def _await(process: subprocess.Popen[str]) -> None:
    if _pipe(process.stdout).readline() != "ready\n":
        raise LogError(
            f"a process of the recording did not start: {process.communicate()[1].strip()}", "see that message"
        )


def _finished(process: subprocess.Popen[str], duration_s: float) -> str:
    try:
        output, errors = process.communicate(timeout=duration_s + GRACE_S)
    except subprocess.TimeoutExpired as error:
        raise LogError("a process of the recording did not end", "try again on an idle machine") from error
    if process.returncode != 0:
        raise LogError(f"a process of the recording failed: {errors.strip()[-300:]}", "see that message")
    return output


def _pipe(stream: Any) -> Any:
    return stream


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LogError(f"{' '.join(words)}: {done.stderr.strip()}", "see that message")
    return done.stdout.strip()
