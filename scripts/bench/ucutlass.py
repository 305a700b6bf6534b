"""Check every program of the µCUTLASS gallery on a GPU, and time a fused GEMM against cuBLAS and PyTorch.

    CUTLASS_PATH=... python scripts/bench/ucutlass.py --out DIR            # needs Hopper, nvcc, 4 GiB for each job

Programs are compiled side by side. Each is compared with PyTorch in FP64 as soon as it is built, in a process of its
own, so that one that fails takes no other with it. Then FP16 GEMMs with bias and GELU run for several tiles, clusters
and raster orders, in turn with cuBLAS. ``DIR/ucutlass.json`` is written again after every step.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import re
import statistics
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from harness import device as devices
from kernelbench.ucutlass import check
from kernelbench.ucutlass.codegen import build
from kernelbench.ucutlass.codegen.assembly.program import program_extents
from kernelbench.ucutlass.codegen.build import reference
from kernelbench.ucutlass.codegen.build.instructions import missing
from kernelbench.ucutlass.codegen.build.library import DTYPES, Library, input_shapes
from kernelbench.ucutlass.operands import operands

_GALLERY = Path(__file__).resolve().parents[2] / "kernelbench" / "ucutlass" / "gallery"
# Largest error of an element, relative to |expected| + rms(expected): a few roundings of the output's type, or of the
# inputs' where the multiplication drops bits (TF32 has 10 bits, truncated). Tensor cores truncate sums as well.
_TOLERANCE = {"fp64": 1e-9, "fp32": 1e-4, "tf32": 5e-3, "fp16": 2e-3, "bf16": 1.2e-2}
_CHECK_S = 90.0  # of one program: the first in a process imports PyTorch
_SIZES = (4096, 8192)
_WARM_UP, _ROUNDS, _CALLS = 5, 9, 10
_TIMING_S = 75.0  # kept for timing when builds take long

_LINEAR = """gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m={m}, n={n}, k=64).with_cluster(m={cm}, n={cn}, k=1)
  .with_stages({stages})
  .with_scheduler(tile={tile}, kernel={kernel}, epilogue={epilogue}, raster={raster}, max_swizzle={swizzle})
  >> bias() >> gelu()
"""
# (rows and columns of a thread block's tile, cluster, stages, schedule, raster order, swizzle, scheduler)
_CHOICES = [
    (128, 256, (2, 1), 4, "tma_cooperative", "heuristic", 1, "persistent"),
    (128, 256, (2, 1), 4, "tma_cooperative", "along_m", 8, "persistent"),
    (128, 256, (2, 1), 4, "tma_cooperative", "along_n", 8, "persistent"),
    (128, 256, (2, 1), 4, "tma_cooperative", "along_m", 2, "persistent"),
    (128, 256, (1, 2), 4, "tma_cooperative", "along_n", 4, "persistent"),
    (256, 128, (2, 1), 4, "tma_cooperative", "along_n", 8, "persistent"),
    (64, 256, (2, 1), 4, "tma_pingpong", "along_m", 4, "persistent"),
    (128, 128, (2, 1), 6, "tma_pingpong", "along_m", 8, "persistent"),
    (128, 256, (2, 1), 4, "tma_cooperative", "heuristic", 1, "stream_k"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=16, help="compilers side by side; 4 GiB each")
    parser.add_argument("--minutes", type=float, default=7.5, help="stop waiting for builds so that timing still fits")
    parser.add_argument("--only", default="", help="programs whose names contain one of these, after commas")
    parser.add_argument("--no-timing", action="store_true")
    options = parser.parse_args()
    Bench(options).run()


class Bench:
    """One run, and the file that it writes."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.begin = time.monotonic()
        options.out.mkdir(parents=True, exist_ok=True)
        self.device = devices.select("cuda")
        major, minor = torch.cuda.get_device_capability(self.device)
        self.capability = f"{major}.{minor}"
        self.found: dict[str, Any] = {
            "command": " ".join(sys.argv), "started": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
            "device": devices.describe(self.device), "versions": devices.versions(self.device),
            "programs": {}, "gemm_builds": {}, "gemm": {},
        }  # fmt: skip
        self.checker = Checker()

    def run(self) -> None:
        programs = {path.stem: path.read_text() for path in sorted(_GALLERY.glob("*.dsl"))}
        wanted = self.options.only.split(",")
        programs = {name: text for name, text in programs.items() if any(part in name for part in wanted)}
        choices = {} if self.options.no_timing else {_name(choice): _source(choice) for choice in _CHOICES}
        # what takes longest comes first
        ordered = [*choices, *sorted(programs, key=lambda name: "sm_90a" not in programs[name])]
        pool = ThreadPoolExecutor(self.options.jobs)
        builds = {name: pool.submit(self._build, (choices | programs)[name]) for name in ordered}
        self._check_as_built({name: builds[name] for name in programs}, programs)
        if choices:
            self._time({name: builds[name] for name in choices})
        self.checker.close()
        pool.shutdown(wait=False, cancel_futures=True)
        right = [name for name, one in self.found["programs"].items() if one.get("right")]
        print(f"{len(right)} of {len(programs)} programs are right, {time.monotonic() - self.begin:.0f} s")

    def _left_s(self) -> float:
        """Seconds until builds are waited for no longer."""
        reserve = 0 if self.options.no_timing else _TIMING_S
        return max(0.0, self.options.minutes * 60 - reserve - (time.monotonic() - self.begin))

    def _build(self, source: str) -> dict[str, Any]:
        program = check(source)
        built = build(program, self.options.out / "build", self.capability, keep_ptx=True)
        ptx = built.ptx.read_text()
        built.ptx.unlink()
        return {"library": str(built.library), "seconds": round(built.seconds, 1), "missing": missing(program, ptx)}

    def _check_as_built(self, builds: dict[str, Future], programs: dict[str, str]) -> None:
        waiting = dict(builds)
        while waiting and self._left_s() > 0:
            done = [name for name, future in waiting.items() if future.done()]
            if not done:
                time.sleep(0.2)
            for name in done:
                self._note("programs", name, self._checked(waiting.pop(name), programs[name]))
        for name, future in waiting.items():
            future.cancel()
            self._note("programs", name, {"error": "not built in time"})

    def _checked(self, future: Future, source: str) -> dict[str, Any]:
        try:
            built = future.result()
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:3000]}
        result = self.checker.check(source, built["library"])
        facts = {"build_s": built["seconds"], "library": Path(built["library"]).name}
        return facts | {"missing_instructions": built["missing"]} | result

    def _note(self, part: str, name: str, value: Any) -> None:
        self.found[part][name] = value
        self.found["seconds"] = round(time.monotonic() - self.begin, 1)
        (self.options.out / "ucutlass.json").write_text(json.dumps(self.found, indent=1) + "\n")
        print(f"{self.found['seconds']:6.1f} s  {part} {name}: {json.dumps(value)[:300]}", flush=True)

    def _time(self, builds: dict[str, Future]) -> None:
        libraries = {}
        for name, future in builds.items():
            try:
                built = future.result(timeout=self._left_s() + 1)
                libraries[name] = Library(check(_source(_CHOICES[list(builds).index(name)])), Path(built["library"]))
                self._note("gemm_builds", name, built)
            except (Exception, FutureTimeout) as error:
                self._note("gemm_builds", name, {"error": f"{type(error).__name__}: {error}"[:2000]})
        for size in _SIZES:
            with devices.exclusive(self.device):
                figures = compared(libraries, size, self.device)
            self._note("gemm", str(size), figures)


class Checker:
    """A process that runs programs, replaced when one of them breaks it."""

    def __init__(self) -> None:
        self._pool = self._new()

    @staticmethod
    def _new() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def check(self, source: str, library: str) -> dict[str, Any]:
        try:
            result = self._pool.submit(checked, source, library).result(timeout=_CHECK_S)
        except FutureTimeout:
            result = {"error": f"no answer in {_CHECK_S:g} s", "broken": True}
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"[:2000], "broken": True}
        if result.pop("broken", False):
            self.close()
            self._pool = self._new()
        return result

    def close(self) -> None:
        for process in list((self._pool._processes or {}).values()):
            process.kill()
        self._pool.shutdown(wait=False, cancel_futures=True)


def checked(source: str, library: str) -> dict[str, Any]:
    """Run a program on random inputs and compare every output; in the checker's process."""
    program = check(source)
    loaded = Library(program, Path(library))
    extents, steps = told_extents(source, program_extents(program))
    with devices.exclusive(torch.device("cuda", 0)):  # others may be timing on it
        named = inputs(program, extents, "cuda")
        try:
            got = loaded(*named.values(), **steps)
            torch.cuda.synchronize()
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:2000], "broken": "CUDA" in str(error)}
        results = {loaded.result: got} | loaded.stored
        wanted = reference.expected(program, named, **steps)
        outputs = {name: _compared(results[name], wanted[name], _tolerance(program)) for name in wanted}
    return {"right": all(one["right"] for one in outputs.values()), "outputs": outputs}


def told_extents(source: str, names: tuple[str, ...]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the extents that the line ``# extents:`` of a program tells, and a convolution's steps by themselves."""
    told = dict(re.findall(r"(\w+)=(\d+)", source.split("# extents:")[1].split("\n")[0]))
    told = {name: int(value) for name, value in told.items()}
    steps = {name: told[name] for name in ("stride", "padding", "dilation") if name in told}
    for name in names:
        what, _, axis = name.partition("_")
        if axis:
            told[name] = steps.get(what, 0 if what == "padding" else 1)
    return told, steps


def inputs(program, extents: dict[str, int], device: str) -> dict[str, Any]:
    """Return random inputs by name, in the order of the call; products stay of size 1."""
    torch.manual_seed(0)
    kernel = program.kernels[0]
    tensors = {}
    shapes = input_shapes(program, extents)
    for one in operands(program):
        if one.role.value == "scalar":
            tensors[one.name] = 0.75
        if one.name not in shapes:
            continue
        shape, dtype = shapes[one.name][0], getattr(torch, DTYPES[str(one.dtype)])
        if one.name == "offsets":
            rows, experts = extents["M"], extents["E"]
            cuts = torch.randperm(rows - 1)[: experts - 1].sort().values + 1
            tensors[one.name] = torch.cat([torch.tensor([0]), cuts, torch.tensor([rows])]).to(device, torch.int32)
        elif not dtype.is_floating_point:
            tensors[one.name] = torch.randint(-8, 8, shape, device=device).to(dtype)
        else:
            width = 1.0
            if re.fullmatch(r"(B|filter)\d?", one.name) and kernel.dtypes.input.bytes > 1:
                width = (extents["K"] if kernel.is_gemm else math.prod(shape[1:])) ** -0.5
            tensors[one.name] = (torch.randn(shape, device=device) * width).to(dtype)
    return tensors


def _tolerance(program) -> float:
    types = program.kernels[-1].dtypes
    if str(types.input) == "tf32" or (str(types.input) == "fp32" and program.arch.is_sm90_or_later):
        return _TOLERANCE["tf32"]
    return _TOLERANCE[str(types.output)]


def _compared(got: torch.Tensor, wanted: torch.Tensor, tolerance: float) -> dict[str, Any]:
    if got.shape != wanted.shape:
        return {"right": False, "error": f"shape {tuple(got.shape)}, expected {tuple(wanted.shape)}"}
    error = (got.double() - wanted).abs() / (wanted.abs() + wanted.square().mean().sqrt() + 1e-30)
    worst = error.max().item()
    return {"right": worst <= tolerance, "worst": worst, "mean": error.mean().item(), "tolerance": tolerance}


def _name(choice: tuple) -> str:
    m, n, cluster, stages, kernel, raster, swizzle, tile = choice
    return f"{m}x{n} cluster {cluster[0]}x{cluster[1]} {kernel} stages {stages} {raster} swizzle {swizzle} {tile}"


def _source(choice: tuple) -> str:
    m, n, (cm, cn), stages, kernel, raster, swizzle, tile = choice
    epilogue = "tma_cooperative" if kernel == "tma_cooperative" else "tma"
    return _LINEAR.format(
        m=m * cm, n=n, cm=cm, cn=cn, stages=stages, tile=tile, kernel=kernel, epilogue=epilogue, raster=raster,
        swizzle=swizzle,
    )  # fmt: skip


def compared(libraries: dict[str, Library], size: int, device: torch.device) -> dict[str, Any]:
    """Return times of one size: every choice and every way of PyTorch's, in turn, and the ratio of the best."""
    torch.manual_seed(0)
    a = torch.randn(size, size, device=device, dtype=torch.float16)
    weight = torch.randn(size, size, device=device, dtype=torch.float16) * size**-0.5
    bias = torch.randn(size, device=device, dtype=torch.float16)
    ways = {
        "torch: mm": lambda: a @ weight.t(),
        "torch: linear, gelu": lambda: functional.gelu(functional.linear(a, weight, bias)),
        "torch: addmm, gelu": lambda: functional.gelu(torch.addmm(bias, a, weight.t())),
        "torch: addmm, gelu(tanh)": lambda: functional.gelu(torch.addmm(bias, a, weight.t()), approximate="tanh"),
        "torch: _addmm_activation": lambda: torch._addmm_activation(bias, a, weight.t(), use_gelu=True),
    }
    wanted = functional.gelu(functional.linear(a[:256].float(), weight.float(), bias.float()))
    errors, failed = {}, {}
    for name, library in libraries.items():
        try:
            call = library.prepare(a, weight, bias)
            errors[name] = ((call()[:256].float() - wanted).abs().max() / wanted.square().mean().sqrt()).item()
            ways[name] = call
        except Exception as error:
            failed[name] = str(error)[:500]
    times = _in_turn(ways)
    flops = 2.0 * size**3
    table = {
        name: {"us": round(us, 2), "tflops": round(flops / us / 1e6, 1), "error": errors.get(name)}
        for name, us in sorted(times.items(), key=lambda pair: pair[1])
    }
    own = [us for name, us in times.items() if name in libraries]
    separate = min(us for name, us in times.items() if "gelu" in name)
    ratio = round(separate / min(own), 4) if own else None
    return {"times": table, "failed": failed, "best_separate_us": round(separate, 2), "speed_vs_separate": ratio}


def _in_turn(ways: dict[str, Any]) -> dict[str, float]:
    """Return the median time of each way, in µs: rounds of a few calls, every way once a round."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for call in ways.values():
        for _ in range(_WARM_UP):
            call()
    torch.cuda.synchronize()
    for _ in range(_ROUNDS):
        for name, call in ways.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            call()
            start.record()
            for _ in range(_CALLS):
                call()
            end.record()
            end.synchronize()
            samples[name].append(start.elapsed_time(end) * 1e3 / _CALLS)
    return {name: statistics.median(times) for name, times in samples.items()}


if __name__ == "__main__":
    main()
