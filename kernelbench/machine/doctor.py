"""The machine: what it has, what can run on it, and how to fix what cannot."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from harness.compile.toolchain import host_compiler, lacking_target, nvcc, program
from harness.device import Nvml, architecture, cpu_name
from harness.faults import MachineFault
from harness.process import sandbox
from harness.solution.languages import Language, languages


@dataclass(frozen=True)
class Finding:
    what: str
    found: str  # '' where it is missing
    advice: str = ""


def examine() -> list[Finding]:
    """One finding a component, in the order in which they depend on each other."""
    return [
        Finding("Python", sys.version.split()[0]),
        Finding("CPU", cpu_name()),
        Finding("PyTorch", torch.__version__),
        _gpu(),
        _driver(),
        _nvcc(),
        _cuda_match(),
        _host_compiler(),
        _ninja(),
        _isolation(),
        *map(_language, languages().values()),
        _module("NVML", "pynvml", "pip install 'kernelbench[nvml]', to record clocks, power and throttling"),
    ]


def abilities(findings: list[Finding]) -> list[tuple[str, bool]]:
    """(kind of solution, whether it can be built and run here)."""
    has = {finding.what: bool(finding.found) for finding in findings}
    gpu, host, ninja = has["GPU"], has["C++ compiler"], has["ninja"]
    cuda = gpu and has["nvcc"]
    return [
        ("plain PyTorch (.py)", True),
        ("C++ (.cpp), on the CPU", host),
        ("inline C++ (.py with load_inline)", host and ninja),
        ("CUDA (.cu)", cuda),
        ("inline CUDA (.py with load_inline)", cuda and host and ninja and has["CUDA match"]),
        *(
            (f"{known.title} ({suffix})", able and has[known.title])
            for known in languages().values()
            for suffix, able in ([(".cu", cuda), (".cpp", host)] if known.headers else [(".py", gpu)])
        ),
    ]


def fit(findings: list[Finding]) -> bool:
    """Return whether there is any compiled kind that can run here."""
    return any(able for kind, able in abilities(findings)[1:])


def _gpu() -> Finding:
    if torch.cuda.is_available():
        try:
            names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        except RuntimeError as error:  # a device that is lost is still counted
            reason = next(iter(str(error).splitlines()), "no reason given")
            return Finding("GPU", "", f"it cannot be used ({reason}): check nvidia-smi, or restart the machine")
        return Finding("GPU", ", ".join(names))
    if torch.version.cuda is None:
        return Finding("GPU", "", "this PyTorch is a CPU build; for an NVIDIA GPU install a CUDA build of torch")
    return Finding("GPU", "", "PyTorch sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES")


def _driver() -> Finding:
    if not torch.cuda.is_available():
        return Finding("driver", "", "needed for a GPU only")
    nvml = Nvml.open(torch.device("cuda", 0))
    return Finding("driver", nvml.driver() if nvml else "present (version not known without NVML)")


def _nvcc() -> Finding:
    compiler = nvcc()
    if compiler is None:
        return Finding("nvcc", "", "install the CUDA toolkit, or set CUDA_HOME, for CUDA solutions")
    with contextlib.suppress(RuntimeError):  # of a device that is lost, which the finding of the GPU says
        if torch.cuda.is_available() and (advice := lacking_target(compiler, architecture(torch.device("cuda", 0)))):
            return Finding("nvcc", "", advice)
    return Finding("nvcc", f"{compiler.version} ({compiler.path})")


def _cuda_match() -> Finding:
    """load_inline needs nvcc and PyTorch of one major version."""
    compiler, built = nvcc(), torch.version.cuda
    if compiler is None or built is None:
        return Finding("CUDA match", "", "needs nvcc and a CUDA build of PyTorch, for inline CUDA")
    found = f"nvcc {compiler.version}, PyTorch for {built}"
    if compiler.version.split(".")[0] == built.split(".")[0]:
        return Finding("CUDA match", found)
    return Finding("CUDA match", "", f"{found}: install the toolkit of PyTorch's major version, for inline CUDA")


def _host_compiler() -> Finding:
    try:
        compiler = host_compiler()
    except MachineFault as fault:
        return Finding("C++ compiler", "", str(fault))
    if compiler is None:
        return Finding("C++ compiler", "", "install g++ or clang++, or set CXX")
    return Finding("C++ compiler", f"{compiler.version} ({compiler.path})")


def _ninja() -> Finding:
    beside = Path(sys.executable).parent / "ninja"
    path = str(beside) if beside.exists() else program("ninja")
    return Finding("ninja", path or "", "" if path else "pip install ninja, for inline C++ and CUDA")


def _isolation() -> Finding:
    """Return how candidates are confined; found out in forks of this process."""
    layers = sandbox.available()
    lacking = sandbox.missing(layers)
    advice = f"this kernel or container does not keep candidates from: {'; '.join(lacking)}" if lacking else ""
    return Finding("isolation", ", ".join(layers.values()), advice)


def _language(known: Language) -> Finding:
    found = known.installed()
    advice = "" if found else f"{known.advice}, for {known.title} solutions"
    unseen = "" if known.seen else "its example has not been seen on a GPU"
    return Finding(known.title, found, "; ".join(filter(None, [advice, unseen])))


def _module(what: str, name: str, advice: str) -> Finding:
    if importlib.util.find_spec(name):
        return Finding(what, "installed")
    return Finding(what, "", advice)
