"""The sandbox of a worker: layers that take away what a candidate does not need.

Each of ``LAYERS`` is one facility of Linux, used through libc. A worker enters
those that this machine allows, in their order, before it sees any candidate
code; what it starts inherits them, and there is no way back. A layer that is
available and still fails ends the worker, so that it never has more freedom than
the record says.

Memory, time, processes and disk are limited from outside (``harness.process.worker_limits``).
A worker is killed as a whole, because a confined process cannot leave its process group.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import struct
from collections.abc import Callable
from pathlib import Path

from harness.process.procfs import set_limit
from harness.process.sandbox import landlock, libc, seccomp
from harness.process.sandbox.landlock import Confinement

# In the order in which they are entered. Take one out to find out which of them something does not bear.
LAYERS = ("limits", "network", "privileges", "files", "system_calls")

_MAX_OPEN_FILES = 4096
_MAX_QUEUED_SIGNALS = 1024  # of a user, for one more of this process: they are counted by user, and few need any

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def enter(layers: list[str], confinement: Confinement) -> None:
    """Confine this process, which must have one thread only. Raises OSError where a layer cannot be entered."""
    libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1)  # what it starts stays below it, where it is counted
    ways = _ways("files" in layers)
    for name in LAYERS:
        if name in layers:
            ways[name](confinement)
            libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of privileges clears it


def available() -> dict[str, str]:
    """Layer -> how it is done here, for each that this machine allows; tried in processes of their own."""
    unprotect()
    ways = _ways(with_files=False)
    found = {name: how for name in LAYERS if (how := _in_a_child(ways[name])) is not None}
    return found if shows_who_hides() else {name: how for name, how in found.items() if name != "limits"}


def shows_who_hides(proc: Path = Path("/proc")) -> bool:
    """Return whether a process that shows nothing of itself is listed: with ``hidepid`` none is, and has no limits."""
    receiver, sender = os.pipe()
    hides = os.fork()
    if hides == 0:
        try:
            protect()
            os.close(receiver)
            os.write(sender, b"1")
            signal.pause()
        finally:
            os._exit(0)
    os.close(sender)
    os.read(receiver, 1)
    os.close(receiver)
    try:
        return bool(os.listdir(proc / str(hides) / "task"))
    except OSError:
        return False
    finally:
        os.kill(hides, signal.SIGKILL)
        os.waitpid(hides, 0)


def missing(found: dict[str, str]) -> list[str]:
    """Return what the absent layers would have kept a candidate from, in words."""
    return [_PURPOSE[name] for name in LAYERS if name not in found]


def protect() -> None:
    """Keep other processes of this user from reading or tracing this one."""
    libc.prctl(libc.PR_SET_DUMPABLE, 0)


def unprotect() -> None:
    """Have this process's own entries in /proc be its own again."""
    libc.prctl(libc.PR_SET_DUMPABLE, 1)


_PURPOSE = {
    "limits": "core dumps, files of any size, memory and processes of a candidate that /proc hides (hidepid)",
    "network": "connections to other processes and hosts",
    "privileges": "programs that run as another user, the rights of root",
    "files": "reading and writing outside of its own folder",
    "system_calls": "tracing, signals to other processes, leaving its process group",
}


def _in_a_child(layer: Callable[[Confinement], str]) -> str | None:
    """Return what ``layer`` says of itself in a fork of this process; None where it fails."""
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(receiver)
            os.write(sender, json.dumps(layer(Confinement())).encode())
        finally:
            os._exit(0)
    os.close(sender)
    with open(receiver, "rb") as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else None


# -- limits ------------------------------------------------------------------------------------------------------------


def _limits(confinement: Confinement) -> str:
    set_limit(resource.RLIMIT_CORE, 1)  # 0 does not keep a dump from a program in core_pattern: core(5)
    set_limit(resource.RLIMIT_FSIZE, confinement.max_file_bytes)
    for limit in (resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO):  # some users may go before others
        set_limit(limit, 0)
    set_limit(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    set_limit(resource.RLIMIT_SIGPENDING, _MAX_QUEUED_SIGNALS)
    return "rlimits"


# -- network: a namespace of its own, with no interface that is up -----------------------------------------------------


def _network(_: Confinement) -> str:
    with contextlib.suppress(OSError):  # without rights of root a namespace of users has to come first
        libc.call("unshare", _CLONE_NEWNET)
        return "own namespace"
    user, group = os.getuid(), os.getgid()
    libc.call("unshare", _CLONE_NEWUSER | _CLONE_NEWNET)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="utf-8")
    return "own namespace, in a user namespace"


# -- privileges: none, and no way to any -------------------------------------------------------------------------------

_CAPABILITY_VERSION = 0x20080522
_CAP_DAC_READ_SEARCH, _LAST_CAPABILITY = 2, 63


def _privileges(_: Confinement) -> str:
    """Drop all rights of root but reading what others own, which ``files`` confines."""
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(_LAST_CAPABILITY + 1):
        with contextlib.suppress(OSError):  # this kernel has fewer
            libc.prctl(libc.PR_CAPBSET_DROP, capability)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    held = (ctypes.c_uint32 * 6)()
    libc.call("capget", header, held)
    kept = held[0] & 1 << _CAP_DAC_READ_SEARCH
    libc.call("capset", header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0))
    return "no new privileges, no capabilities"


def _system_calls(with_files: bool) -> str:
    version = landlock.version_in_kernel() if with_files else 0  # what it does not know of is left to this layer
    return seccomp.refuse_system_calls(signals=version < 6, truncation=version < 3)


def _ways(with_files: bool) -> dict[str, Callable[[Confinement], str]]:
    """Return how each layer is entered, beside the layer ``files`` or without it."""
    return {
        "limits": _limits,
        "network": _network,
        "privileges": _privileges,
        "files": landlock.restrict,
        "system_calls": lambda _: _system_calls(with_files),
    }
