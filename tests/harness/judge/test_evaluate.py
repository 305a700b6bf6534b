"""Every status of the contract, reached by a real candidate; the honest ones pass; forged ones do not."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from harness.compile import Artefact
from harness.faults import MachineFault
from harness.job import encode_problem
from harness.judge import evaluate as evaluate_module
from harness.judge import record
from harness.judge import server as server_module
from harness.judge.conditions import Conditions
from harness.judge.cross_check.base import NotRead
from harness.judge.cross_check.cpu import CpuWallClockCheck
from harness.judge.time_candidate import _runs
from harness.limits import MAX_LOG_BYTES, MAX_MESSAGE_BYTES
from harness.problem.module import ProblemError, find_problems
from harness.process.procfs import usable_cores
from harness.process.worker_process import Worker
from harness.result import CandidateFailure, Result, Status
from harness.solution.discover import read_solution
from harness.timing.convergence import REASONS

RELU = """
import torch, torch.nn as nn
class ModelNew(nn.Module):
    def forward(self, x):
        {body}
"""

INLINE_CPP_ERROR = """
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
CPP = r'''
#include <torch/types.h>
torch::Tensor relu(torch::Tensor x) {
    int unused = 1;
    return x.no_such_method();
}
'''
extension = load_inline(name="kb_bad", cpp_sources=CPP, functions=["relu"])
class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
"""


def relu(body):
    return RELU.format(body=body.replace("\n", "\n        "))


def test_an_honest_solution_is_ok_with_all_that_a_record_needs(judged, problem):
    result = judged(problem("1/19"), relu("return x.clamp(min=0)"))
    assert result.status is Status.OK, result.message
    assert result.correctness["trials"].count("published inputs, initial weights") == 2
    assert "mixed inputs, initial weights" in result.correctness["trials"]
    assert result.speedup == pytest.approx(result.baselines["eager"]["median_ms"] / result.timing["median_ms"])
    median_s = result.timing["median_ms"] / 1e3
    assert result.gflops == pytest.approx(64 * 4096 / median_s / 1e9)
    assert result.gbps == pytest.approx(2 * 64 * 4096 * 4 / median_s / 1e9)
    assert "no limits are known for" in result.sol["unavailable"]
    assert result.integrity["built_own"] is False
    assert result.timing["samples"] >= 10 and len(result.timing["samples_ms"]) == result.timing["samples"]
    assert result.timing["method"] == "perf_counter_ns" and result.timing["cache"] == "cold but for the inputs"
    assert result.timing["stopped"] in REASONS
    assert result.timing["cross_check"]["call_ms"] < 10
    eager = result.baselines["eager"]
    assert eager["interval"][0] <= result.speedup <= eager["interval"][1]
    assert eager["verdict"] in ("faster", "slower", "tie", "unstable")
    assert result.device["name"] and result.versions["torch"] == torch.__version__ and result.started
    assert {"wait", "reference", "load", "check", "time"} < set(result.stages_s)
    assert sum(result.stages_s.values()) == pytest.approx(result.seconds, abs=0.5)
    assert Result.from_json(result.to_json()) == result


FAILING = {
    "never returns": ("while True: pass", Status.TIMEOUT, "no answer within 2 s"),
    "asks for too much": ("return x + torch.empty(1 << 48)[0]", Status.OUT_OF_MEMORY, "allocate"),
    "takes too much": ("hog = []\nwhile True: hog.append(torch.ones(8 << 20))", Status.OUT_OF_MEMORY, "host memory"),
    "segfaults": ("import ctypes; ctypes.string_at(0)", Status.CRASHED, "SIGSEGV"),
    "exits with 0": ("import os; os._exit(0)", Status.CRASHED, "exited with code 0"),
    "raises": ("return x + undefined", Status.RUNTIME_ERROR, "'undefined' is not defined"),
    "assumes an import": ("return F.relu(x)", Status.RUNTIME_ERROR, "sees only what it imports itself"),
    "exits politely": ("raise SystemExit(0)", Status.RUNTIME_ERROR, "SystemExit"),
    "wrong shape": ("return x.relu().flatten()", Status.WRONG_SHAPE, "expected [64, 4096]"),
    "broadcastable": ("return x.relu()[:1]", Status.WRONG_SHAPE, "shape [1, 4096]"),
    "too many": ("return x.relu(), x", Status.WRONG_SHAPE, "returned (tensor, tensor), expected tensor"),
    "none": ("pass", Status.WRONG_DTYPE, "returned None, expected tensor"),
    "wrong type": ("return x.relu().double()", Status.WRONG_DTYPE, "float64, expected float32"),
    "subclass": (
        "class Lazy(torch.Tensor): pass\nreturn x.relu().as_subclass(Lazy)", Status.WRONG_DTYPE, "subclass Lazy",
    ),
    "zeros": ("return torch.zeros_like(x)", Status.WRONG_VALUE, "first at [0, 0] got 0"),
    "last row": ("y = x.relu(); y[-1, -1] = 2.0; return y", Status.WRONG_VALUE, "first at [63, 4095] got 2"),
    "nan": ("y = x.relu(); y[3, 5] = float('nan'); return y", Status.NONFINITE, "[3, 5] got nan"),
    "scribbles": ("y = x.relu(); x.zero_(); return y", Status.REJECTED, "overwrites_inputs"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_what_a_call_does_decides_the_status(judged, problem, name):
    body, status, message = FAILING[name]
    limits = {"timeout_s": 2} if status is Status.TIMEOUT else {"memory_bytes": 1 << 30}
    result = judged(problem("1/19"), relu(body), **limits)
    assert result.status is status, result.message
    assert message in result.message
    assert result.timing is None and result.speedup is None
    assert result.rule == ("overwrites_inputs" if status is Status.REJECTED else None)


def test_what_the_published_draw_hides_is_seen(judged, problem):
    result = judged(problem("1/19"), relu("return x.clone()"))  # all published inputs are positive
    assert result.status is Status.WRONG_VALUE and "(signed inputs, initial weights)" in result.message


@pytest.mark.slow
def test_weights_that_start_as_ones_and_zeros_may_not_be_left_out(judged, problem):
    source = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.{name} = torch.nn.LayerNorm(shape)
    def forward(self, x):
        return torch.nn.functional.layer_norm(x, x.shape[1:])
"""
    name = next(iter(problem("1/40").module.Model(*problem("1/40").workload("small").get_init_inputs())._modules))
    result = judged(problem("1/40"), source.format(name=name))
    assert result.status is Status.WRONG_VALUE and "hardened weights" in result.message
    # nor under other names, or under none
    result = judged(problem("1/40"), source.format(name="other"))
    assert result.status is Status.WRONG_VALUE and "start as ones, zeros" in result.message
    result = judged(problem("1/40"), source.format(name="other").replace("torch.nn.LayerNorm(shape)", "shape"))
    assert result.status is Status.WRONG_VALUE and "changed weights" in result.message
    # who uses them may call them anything
    body = source.format(name="other").replace("functional.layer_norm(x, x.shape[1:])", "Identity()(self.other(x))")
    result = judged(problem("1/40"), body)
    assert result.status is Status.OK and result.correctness["weights"] == "seeded", result.message
    assert "signed inputs, changed weights" in result.correctness["trials"]


LOADING = {
    "syntax error": ("import torch\nclass ModelNew(:\n", ".py", Status.BUILD_ERROR, "line 2"),
    "null byte": ("x = '\0'", ".py", Status.BUILD_ERROR, "null byte"),
    "nested too deep": ("x = " + "-" * 200_000 + "1", ".py", Status.BUILD_ERROR, "is not Python source: |deeper nest"),
    "no ModelNew": ("class Model: pass", ".py", Status.LOAD_ERROR, "defines no ModelNew"),
    "import fails": ("import nothing_there", ".py", Status.LOAD_ERROR, "candidate.py"),
    "constructor fails": (
        "class ModelNew:\n    def __init__(self, n): pass", ".py", Status.LOAD_ERROR, "missing 1 required",
    ),
    "inline C++ does not compile": (INLINE_CPP_ERROR, ".py", Status.BUILD_ERROR, "candidate.py:8: "),
    "C++ does not compile": ("int f() {\n  return g();\n}", ".cpp", Status.BUILD_ERROR, "candidate.cpp:2: "),
    "no symbol": ("void solution() {}", ".cpp", Status.LOAD_ERROR, "no symbol `solution`"),
    "unresolved symbol": (
        'extern "C" int missing();\nextern "C" int solution() { return missing(); }', ".cpp",
        Status.LOAD_ERROR, "missing",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADING)
def test_what_does_not_load_says_where(judged, problem, name):
    source, suffix, status, message = LOADING[name]
    result = judged(problem("1/19"), source, suffix)
    assert result.status is status, result.message
    assert re.search(message, result.message), result.message


def test_a_record_names_no_folder_of_this_machine(judged, problem, tmp_path):
    result = judged(problem("1/19"), relu("return x + torch.nn.Linear(1, 1)(open(__file__ + '.gone'))"))
    assert result.status is Status.RUNTIME_ERROR and 'File "candidate.py", line' in result.message
    assert 'File "harness/worker/main.py", line' in result.log and "candidate.py.gone" in result.message
    for folder in (tmp_path, Path(__file__).parents[3], Path(torch.__file__).parents[2], Path.home()):
        assert f"{folder}/" not in result.message + result.log


def test_a_cpp_solution_gets_inputs_state_outputs_and_sizes_in_order(judged, problem):
    source = r"""
#include <cstddef>
extern "C" void solution(const float* x, const float* bias, const float* w, float* out, size_t b, size_t in, size_t n) {
    for (size_t r = 0; r < b; r++) for (size_t o = 0; o < n; o++) {
        float s = bias[o];
        for (size_t k = 0; k < in; k++) s += x[r * in + k] * w[o * in + k];
        out[r * n + o] = s > 0 ? s : 0;
    }
}"""
    result = judged(problem("2/76"), source, ".cpp")
    assert result.status is Status.OK, result.message
    assert result.integrity["built_own"]


SWAPPED = r"""
#include <cstddef>
extern "C" void solution(float* out, const float* x, size_t b, size_t d) {
    for (size_t i = 0; i < b * d; i++) out[i] = x[i] > 0 ? x[i] : 0;
}"""


def test_swapped_arguments_are_named_with_the_signature_that_is_expected(judged, problem):
    result = judged(problem("1/19"), SWAPPED, ".cpp")
    assert result.status is Status.NONFINITE
    assert "`output` was never written: all 262144 elements" in result.message
    assert "the call wrote into input `x`" in result.message
    assert "const float* x,\n    float* output,\n    size_t batch_size,\n    size_t dim)" in result.message


def test_an_input_that_a_library_overwrites_is_named_with_the_signature(judged, problem):
    scribbles = SWAPPED.replace("float* out, const float* x", "float* x, float* out")
    result = judged(problem("1/19"), scribbles.replace("x[i] : 0;", "x[i] : 0, x[i] = 1;"), ".cpp")
    assert (result.status, result.rule) == (Status.REJECTED, "overwrites_inputs"), result.message
    assert "wrote into input `x`" in result.message and "float* output," in result.message


def test_a_wrong_value_of_a_library_that_keeps_to_its_arguments_shows_no_signature(judged, problem):
    keeps = SWAPPED.replace("float* out, const float* x", "const float* x, float* out").replace(": 0", ": 1")
    result = judged(problem("1/19"), keeps, ".cpp")
    assert result.status is Status.WRONG_VALUE and "extern" not in result.message


def test_an_element_that_is_never_written_is_found(judged, problem):
    source = r"""
#include <cstddef>
extern "C" void solution(const float* x, float* out, size_t b, size_t d) {
    for (size_t i = 0; i + 1 < b * d; i++) out[i] = x[i] > 0 ? x[i] : 0;
}"""
    result = judged(problem("1/19"), source, ".cpp")
    assert result.status in (Status.NONFINITE, Status.WRONG_VALUE) and "[63, 4095]" in result.message
    assert "1 of 262144 elements of `output` were never written" in result.message


SEVERAL = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x, index, mask, factor):
        picked = x[index] * factor
        return picked, {"mask": ~mask, "count": int(index.numel()), "mean": picked.mean()}
def get_inputs():
    return [torch.rand(32, 64), torch.randint(0, 32, (16,)), torch.rand(32, 64) > 0.5, 1.5]
def get_init_inputs():
    return []
"""


@pytest.mark.slow
def test_several_outputs_integers_booleans_and_scalars_of_a_kernelbench_module(judged, write_problem):
    own = write_problem(SEVERAL)
    honest = SEVERAL.replace("class Model", "class ModelNew")
    assert judged(own, honest).status is Status.OK
    assert judged(own, honest.replace("~mask", "mask")).status is Status.WRONG_VALUE
    assert judged(own, honest.replace("index.numel()", "3")).status is Status.WRONG_VALUE
    assert judged(own, honest.replace("~mask", "mask.float()")).status is Status.WRONG_DTYPE
    reordered = '{"mean": picked.mean(), "mask": ~mask, "count": int(index.numel())}'
    shown = honest[honest.index('{"mask"') : honest.index("}") + 1]
    assert judged(own, honest.replace(shown, reordered)).status is Status.OK
    renamed = judged(own, honest.replace('"mean"', '"average"'))
    assert renamed.status is Status.WRONG_SHAPE and "expected (tensor, {'count': tensor, 'mask'" in renamed.message


@pytest.mark.slow
def test_random_forwards_are_refused_unless_declared_and_then_draw_the_same_on_both_sides(judged, write_problem):
    source = (
        "import torch, torch.nn as nn\nclass Model(nn.Module):\n"
        "    def forward(self, x): return torch.dropout(x, 0.5, True)\n"
        "def get_inputs(): return [torch.rand(128, 128)]\ndef get_init_inputs(): return []\n"
    )
    candidate = source.replace("class Model", "class ModelNew")
    with pytest.raises(ProblemError, match="its output is random"):
        judged(write_problem(source), candidate)
    declared = source + "RANDOM = 'draw the mask as torch.dropout does'\n"
    assert judged(write_problem(declared), candidate).status is Status.OK
    without = candidate.replace("x, 0.5, True", "x, 0.0, True")
    assert judged(write_problem(declared), without).status is Status.WRONG_VALUE


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_lower_precisions(judged, problem, precision):
    result = judged(problem("1/19"), relu("return x.clamp(min=0)"), precision=precision)
    assert result.status is Status.OK and result.precision == precision


@pytest.mark.slow
def test_weights_are_matched_by_seed_where_names_differ(judged, problem):
    source = """
import torch, torch.nn as nn
class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias_shape):
        super().__init__()
        self.renamed = nn.Linear(in_features, out_features, bias=False)
        self.offset = nn.Parameter(torch.randn(bias_shape))
    def forward(self, x):
        return torch.relu(self.renamed(x) + self.offset)
"""
    result = judged(problem("2/76"), source)
    assert result.status is Status.OK and result.correctness["weights"] == "seeded"


@pytest.mark.parametrize(
    "body",
    [
        "global kept\ntry: return kept\nexcept NameError: kept = x.relu(); return kept",
        "self.calls = getattr(self, 'calls', 0) + 1\nreturn x.relu() if self.calls <= 5 else torch.zeros_like(x)",
        "self.by = getattr(self, 'by', {})\nreturn self.by.setdefault(x.data_ptr(), x.relu())",
    ],
    ids=["replays its first output", "computes only while it is checked", "caches by address"],
)
def test_shortcuts_that_a_naive_harness_accepts_are_caught(judged, problem, body):
    assert judged(problem("1/19"), relu(body)).status is Status.WRONG_VALUE


FORGED = """
import gc, json, socket, struct
import torch, torch.nn as nn
class ModelNew(nn.Module):
    def forward(self, x):
        channel = next(o for o in gc.get_objects() if type(o) is socket.socket and o.fileno() >= 0)
        body = json.dumps({answer}).encode()
        channel.sendall(struct.pack("!I", len(body)) + body)
        while True: pass
"""
RIGHT_KIND = "{'type': 'Tensor', 'shape': [64, 4096], 'dtype': 'float32', 'device': 'cpu'}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        "{'times_ms': [1e-9], 'queue_full': True, 'outputs': []}",
        "{'times_ms': ['x'], 'outputs': [[]]}",
        "{'times_ms': [1e-9], 'structures': [None], 'outputs': [[" + RIGHT_KIND + "]]}",
        "{'times_ms': [-1.0], 'outputs': [[" + RIGHT_KIND + "]], 'structures': ['tensor']}",
        "{'status': 'ok', 'speedup': 100}",
        "{'times_ms': [1e-9], 'outputs': [[" + RIGHT_KIND + "]], 'structures': ['tensor']}",
        "{'error': {'status': ['ok']}}",
        "{'error': {'status': {}, 'message': [], 'log': 1}}",
    ],
)
def test_a_forged_answer_is_a_failure_of_the_candidate(judged, problem, answer):
    result = judged(problem("1/19"), FORGED.format(answer=answer), timeout_s=5)
    assert result.status is not Status.OK and result.timing is None


@pytest.mark.parametrize(
    "body",
    ["return x.t().contiguous().relu_().t()", "return torch.cat((x, x), 1).relu_()[:, : x.shape[1]]"],
    ids=["transposed", "with gaps"],
)
def test_an_output_is_right_however_it_lies_in_memory(judged, problem, body):
    result = judged(problem("1/19"), relu(body))
    assert result.status is Status.OK, result.message


@pytest.mark.parametrize("order", ["[0, 0]", "[0]", "['x', 1]", "[0.0, 1.0]", "None"])
def test_an_order_of_dimensions_that_is_none_is_the_candidates_failure(judged, problem, order):
    patch = f"import harness.worker.main as worker\nworker.order_of = lambda tensor: {order}\n"
    result = judged(problem("1/19"), patch + relu("return x.relu()"))
    assert result.status is Status.CRASHED and "lie in memory" in result.message, result.message


@pytest.mark.parametrize("address", ["0", "-1", "1 << 62", "1 << 80", "'x'", "0.5", "None", "[]"])
def test_an_address_that_is_none_is_the_candidates_failure(judged, problem, address):
    patch = f"""
import harness.process.protocol as wire
send = wire.send
def forged(connection, message):
    if "addresses" in message:
        message["addresses"] = [[{address}]] * len(message["addresses"])
    send(connection, message)
wire.send = forged
"""
    result = judged(problem("1/19"), patch + relu("return x.relu()"))
    assert result.status is Status.CRASHED and "not in memory where" in result.message, result.message


SKIPS_MOST = """
import itertools
import harness.worker.main as worker
play_calls, calls, last = worker.play_calls, itertools.count(), []
def some(*arguments):
    if next(calls) % 4 == 0: last[:] = play_calls(*arguments)
    return last
worker.play_calls = some
""" + relu("return x.relu()")


def test_calls_in_a_row_that_are_left_out_are_found(judged, problem):
    result = judged(problem("1/19"), SKIPS_MOST)
    assert result.status is Status.WRONG_VALUE and "of a call in a row" in result.message, result.message


SEES = """
import sys
def waiting():
    frame = sys._getframe()
    while frame := frame.f_back:
        if frame.f_code.co_name == "burst":
            return frame.f_locals["self"]._burst_inputs
    return []
"""
ONE_CALL_AT_A_TIME = SEES + relu("assert len(waiting()) < 2, 'inputs of several calls'; return x.relu()")


def test_inputs_of_one_call_at_a_time_exist_under_the_judges_clock(judged, problem):
    result = judged(problem("1/19"), ONE_CALL_AT_A_TIME)
    assert result.status is Status.OK and result.timing["cross_check"]["calls"] > 1, result.message


IN_PLACE_IN_A_ROW = SEES + relu("return x.clamp_(min=0) if waiting() else x.relu()")


def test_inputs_that_are_overwritten_under_the_judges_clock_alone_are_found(judged, problem):
    result = judged(problem("1/19"), IN_PLACE_IN_A_ROW)
    assert (result.status, result.rule) == (Status.REJECTED, "overwrites_inputs"), result.message


def test_without_the_judges_clock_a_result_is_right_and_has_no_speedup(judged, problem, monkeypatch):
    def unable(*_):
        raise NotRead("it is not to be had here")

    monkeypatch.setattr(CpuWallClockCheck, "read", unable)
    result = judged(problem("1/19"), FAST_CLOCK)
    assert result.status is Status.OK and result.speedup is None, result.message
    assert result.unconfirmed == "not read: it is not to be had here"
    assert result.gbps is result.gflops is None, "they are of a time that is the candidate's word"
    eager = result.baselines["eager"]
    assert eager["median_ms"] > 0 and not eager.keys() & {"speedup", "interval", "verdict"}


# It works for those 3 ms: who waits for a core is not accused, and pays what the judge's clock shows.
FAST_CLOCK = """
import time
ticks = iter(range(10**9))
time.perf_counter_ns = lambda: next(ticks) * 1000
def work(end):
    while time.monotonic() < end: pass
""" + relu("work(time.monotonic() + 0.003); return x.clamp(min=0)")


@pytest.mark.slow
def test_a_clock_that_the_candidate_has_put_forward_is_not_believed(judged, problem):
    result = judged(problem("1/19"), FAST_CLOCK)
    assert (result.status, result.rule) == (Status.REJECTED, "forged_clock"), (result.message, result.timing)
    claimed_ms = result.timing["median_ms"]
    assert claimed_ms < 0.01 and result.timing["cross_check"]["call_ms"] > 100 * claimed_ms


@pytest.mark.slow
def test_a_forged_clock_has_no_speedup_while_others_have_the_cores(judged, problem):
    busy = [subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"]) for _ in range(2 * usable_cores())]
    try:
        result = judged(problem("1/19"), FAST_CLOCK)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert (result.status, result.speedup) == (Status.OK, None), (result.message, result.timing)
    assert "other programs had" in result.unconfirmed


SLOW_IN_BURSTS = """
import sys, time
def in_a_burst():
    frame = sys._getframe()
    while frame and frame.f_code.co_name != "burst":
        frame = frame.f_back
    return frame
""" + relu("if in_a_burst(): time.sleep(1)\nreturn x.clamp(min=0)")


def test_calls_in_a_row_have_the_time_limit_of_one_step(judged, problem):
    """Each had a limit of its own, and one program held a run for 194 times as long."""
    result = judged(problem("1/19"), SLOW_IN_BURSTS, timeout_s=2)
    assert result.status is Status.TIMEOUT and "calls in a row took longer than 2 s together" in result.message


HALF_CLOCK = """
import time
clock = time.perf_counter_ns
time.perf_counter_ns = lambda: clock() // 2
""" + relu("time.sleep(0.003); return x.clamp(min=0)")


def test_what_the_judges_clock_shows_beyond_its_doubt_is_added_to_the_times(judged, problem):
    for _ in range(3):  # other work on this machine may excuse a time
        result = judged(problem("1/19"), HALF_CLOCK)
        assert result.status is Status.OK, (result.message, result.timing)
        clock, median_ms = result.timing["cross_check"], result.timing["median_ms"]
        took_ms = clock["call_ms"] * clock["waited_more"]
        assert clock["penalty_ms"] == pytest.approx(max(0.0, took_ms - clock["allowed_ms"]), abs=1e-3)
        assert result.speedup == pytest.approx(result.baselines["eager"]["median_ms"] / median_ms, rel=1e-3)
        if clock["penalty_ms"]:
            break
    assert clock["penalty_ms"] and median_ms > 2, result.timing


UNWATCHED = FAST_CLOCK.replace(
    "+ 0.003);", "+ 0.003); 'burst' in [f.name for f in traceback.extract_stack()] and allocate();"
).replace("import time", "import time, traceback\ndef allocate(): raise MemoryError('too much at once')")


def test_memory_that_is_only_lacking_under_the_judges_clock_is_no_way_round_it(judged, problem):
    result = judged(problem("1/19"), UNWATCHED)
    assert result.status is Status.OUT_OF_MEMORY and "too much at once" in result.message


NO_CLOCK = FAST_CLOCK.replace("next(ticks) * 1000", "0")


def test_a_clock_that_stands_still_is_the_candidates_failure(judged, problem):
    result = judged(problem("1/19"), NO_CLOCK)
    assert result.status is Status.CRASHED and "reported 0" in result.message


@pytest.mark.slow
def test_several_baselines_each_have_their_own_comparison(judged, problem):
    result = judged(problem("1/19"), relu("return x.clamp(min=0)"), baselines=("compile", "eager"))
    assert result.status is Status.OK, result.message
    assert list(result.baselines) == ["compile", "eager"]
    assert result.speedup == result.baselines["compile"]["speedup"]
    assert result.baselines["compile"]["median_ms"] > 0 and result.baselines["eager"]["samples"] >= 10


@pytest.mark.slow
def test_a_baseline_that_fails_for_want_of_room_beside_a_candidate_is_replaced_by_no_slower_one(
    judged, problem, monkeypatch
):
    """It filled a small disk when it was called: torch.compile failed, and the speedup was over eager."""

    def compiled(*_):
        raise RuntimeError("cannot be lowered")  # what says that there is no room is the machine's at once

    def full():
        raise MachineFault("no room")

    monkeypatch.setattr("harness.judge.time_candidate.EvaluationSession.time_model", compiled)
    arguments = problem("1/19"), relu("return x.clamp(min=0)")
    result = judged(*arguments, baselines=("compile", "eager"))
    assert "cannot be lowered" in result.baselines["compile"]["error"]
    assert result.speedup == result.baselines["eager"].get("speedup")
    monkeypatch.setattr("harness.judge.time_candidate.check_disk", full)
    with pytest.raises(MachineFault, match="no room"):
        judged(*arguments, baselines=("compile", "eager"))


def test_a_reference_that_fails_is_not_the_candidates_failure(judged, write_problem):
    source = (
        "import torch, torch.nn as nn\nclass Model(nn.Module):\n    def forward(self, x): raise ValueError('broken')\n"
        "def get_inputs(): return [torch.rand(2)]\ndef get_init_inputs(): return []\n"
    )
    with pytest.raises(ProblemError, match="the reference of 1/1 .* fails on cpu: ValueError: broken"):
        judged(write_problem(source), relu("return x"))


def test_a_reference_that_refuses_other_than_published_inputs_is_told_about_domain(judged, write_problem):
    source = (
        "import torch, torch.nn as nn\nclass Model(nn.Module):\n    def forward(self, x):\n"
        "        assert x.min() >= 0, 'negative'\n        return x\n"
        "def get_inputs(): return [torch.rand(2000)]\ndef get_init_inputs(): return []\n"
    )
    # where what is timed has nothing negative it is told by a trial, beside a candidate, which is tried again then
    told = {ProblemError: "timed inputs", MachineFault: "signed inputs, initial weights"}
    with pytest.raises(tuple(told), match=" DOMAIN .*: AssertionError: negative") as failure:
        judged(write_problem(source), relu("return x.clone()"))
    assert told[failure.type] in str(failure.value)
    assert judged(write_problem(source + "DOMAIN = 'nonnegative'\n"), relu("return x.clone()")).correct


OVERFLOWS = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x): return {}
def get_inputs(): return [torch.rand(64) + 1]
def get_init_inputs(): return []
"""


@pytest.mark.parametrize(("precision", "fits"), [("fp16", False), ("bf16", True)])
def test_a_precision_that_cannot_hold_the_reference_is_not_the_candidates_failure(
    judged, write_problem, precision, fits
):
    source = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x * 300 * 300"
    problem = write_problem(OVERFLOWS.format("x * 300 * 300"))
    if fits:
        assert judged(problem, source, precision=precision).status is Status.OK
    else:
        with pytest.raises(ProblemError, match="not finite in 64 elements with fp16.*another --precision"):
            judged(problem, source, precision=precision)


def test_infinities_that_belong_to_the_function_are_compared_in_any_precision(judged, write_problem):
    problem = write_problem(OVERFLOWS.format("torch.where(x > 1.5, -torch.inf, x)"))
    source = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return {}"
    assert judged(problem, source.format("x.masked_fill(x > 1.5, -torch.inf)"), precision="fp16").status is Status.OK
    assert judged(problem, source.format("x"), precision="fp16").status is Status.WRONG_VALUE


ILLEGAL_ACCESS = r"""
__global__ void f(float* out) { out[1ull << 40] = 1.f; }
extern "C" void solution(const float* x, float* out, size_t b, size_t d) { f<<<1, 1>>>(out); }
"""
GOOD_CUDA = r"""
__global__ void f(const float* x, float* y, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.f);
}
extern "C" void solution(const float* x, float* out, size_t b, size_t d) {
    f<<<unsigned((b * d + 255) / 256), 256>>>(x, out, b * d);
}
"""
ENDLESS_KERNEL = r"""
__global__ void f(volatile float* out) { while (out[0] != 12.f) {} }
extern "C" void solution(const float* x, float* out, size_t b, size_t d) { f<<<1, 1>>>(out); }
"""


@pytest.mark.gpu
def test_an_illegal_access_on_the_gpu_is_crashed_and_spares_the_next_candidate(judged, problem):
    crashed = judged(problem("1/19"), ILLEGAL_ACCESS, ".cu", device="cuda", workload="small")
    assert crashed.status is Status.CRASHED and "illegal" in crashed.message.lower()
    good = judged(problem("1/19"), GOOD_CUDA, ".cu", device="cuda", workload="small")
    assert good.status is Status.OK, good.message
    assert good.timing["method"] == "cuda_events" and good.timing["queue_full"]
    assert good.timing["launch_bound_ms"] > 0


@pytest.mark.gpu
def test_an_endless_kernel_is_a_timeout_and_spares_the_next_candidate(judged, problem):
    hung = judged(problem("1/19"), ENDLESS_KERNEL, ".cu", device="cuda", workload="small", timeout_s=5)
    assert hung.status is Status.TIMEOUT
    good = judged(problem("1/19"), GOOD_CUDA, ".cu", device="cuda", workload="small")
    assert good.status is Status.OK, good.message


@pytest.mark.gpu
def test_too_much_device_memory_is_out_of_memory(judged, problem):
    body = "hog = []\nwhile True: hog.append(torch.ones(1 << 30, device=x.device))"
    result = judged(problem("1/19"), relu(body), device="cuda", workload="small", memory_bytes=16 << 30)
    assert result.status is Status.OUT_OF_MEMORY


FORGED_EVENTS = """
torch.cuda.Event.elapsed_time = lambda *_: 0.02
""" + relu("for _ in range(20): y = x.clamp(min=0)\nreturn y")
SLOW_BESIDE = """
import torch
stream, hog = torch.cuda.Stream(), torch.zeros(1 << 28, device="cuda")
torch.cuda.synchronize = lambda *_: torch.cuda.current_stream().synchronize()
class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = a @ b
        with torch.cuda.stream(stream):
            for _ in range(40): hog.add_(1)
        return c
"""


@pytest.mark.gpu
def test_events_that_the_candidate_forges_are_not_believed(judged, problem):
    result = judged(problem("1/19"), "import torch\n" + FORGED_EVENTS, device="cuda", workload="small")
    assert (result.status, result.rule) == (Status.REJECTED, "forged_clock"), result.message
    assert result.timing["cross_check"]["queue_held"]


HALVED = """
elapsed_time = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda *events: elapsed_time(*events) / 2
"""


@pytest.mark.gpu
@pytest.mark.parametrize("patch", ["torch.cuda.Event.query = lambda *_: True", ""])
def test_whoever_waits_for_the_device_is_timed_by_the_judge(judged, problem, patch):
    body = "y = x.clamp(min=0)\n" + ("" if patch else "torch.cuda.synchronize()\n") + "return y"
    honest, halved = (
        judged(problem("1/19"), f"import torch\n{forgery}\n" + relu(body), device="cuda", track="open")
        for forgery in (patch, f"{patch}{HALVED}")
    )
    assert honest.status is Status.OK and not honest.timing["queue_full"], honest.message
    assert not honest.timing["cross_check"]["queue_held"]
    assert halved.rule == "forged_clock" or halved.speedup == pytest.approx(honest.speedup, rel=0.1)


@pytest.mark.gpu
def test_whoever_waits_only_in_a_burst_is_timed_with_its_launches(judged, problem):
    body = "'burst' in [f.name for f in traceback.extract_stack()] and torch.cuda.synchronize()\nreturn x.relu()"
    result = judged(problem("1/19"), "import traceback\n" + relu(body), device="cuda", track="open")
    assert result.status is Status.OK and not result.timing["cross_check"]["queue_held"], result.message


TWO_STREAMS = """
import torch
{forgery}
side = torch.cuda.Stream()
class ModelNew(torch.nn.Module):
    def forward(self, x):
        own = torch.cuda.current_stream()
        half = x.shape[0] // 2
        y = torch.empty_like(x)
        side.wait_stream(own)
        with torch.cuda.stream(side):
            y[:half].copy_(x[:half]).relu_()
        y[half:].copy_(x[half:]).relu_()
        own.wait_stream(side)
        return y
"""


@pytest.mark.gpu
def test_whoever_works_on_two_streams_is_timed_with_its_launches(judged, problem):
    honest, halved = (
        judged(problem("1/19"), TWO_STREAMS.format(forgery=forgery), device="cuda", track="open")
        for forgery in ("", HALVED)
    )
    assert honest.status is Status.OK, honest.message
    assert honest.timing["profile"]["side_launches"] >= 2 and not honest.timing["cross_check"]["queue_held"]
    assert halved.rule == "forged_clock" or halved.speedup == pytest.approx(honest.speedup, rel=0.1)


BRANCHES = """
import torch
class ModelNew(torch.nn.Module):
    graph = None
    def record(self, x):
        self.x, self.y, half, side = x.clone(), torch.empty_like(x), x.shape[0] // 2, torch.cuda.Stream()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.clamp_min(self.x[:half], 0, out=self.y[:half])
            torch.clamp_min(self.x[half:], 0, out=self.y[half:])
            torch.cuda.current_stream().wait_stream(side)
    def forward(self, x):
        if self.graph is None:
            self.record(x)
        self.x.copy_(x)
        self.graph.replay()
        return self.y.clone()
"""


@pytest.mark.gpu
@pytest.mark.parametrize("workload", ["small", "full"])
def test_a_graph_with_branches_is_not_taken_for_a_forgery(judged, problem, workload):
    result = judged(problem("1/19"), BRANCHES, device="cuda", track="open", workload=workload)
    assert result.status is Status.OK, result.message
    assert result.timing["profile"]["side_launches"] and not result.timing["cross_check"]["queue_held"]


@pytest.mark.gpu
def test_recurrent_layers_of_pytorch_are_not_taken_for_a_forgery(judged, problem):
    """They have a stream of their own; 3/36 was ``forged_clock`` at this size."""
    own = problem("3/36")
    source = own.path.read_text().replace("class Model(", "class ModelNew(")
    result = judged(own, source, device="cuda", track="open", workload="small")
    assert result.status is Status.OK, result.message
    assert result.speedup < 1.1


HOARDS = f"""
import torch
hoard = torch.empty(torch.cuda.mem_get_info()[0] - (64 << 20), dtype=torch.int8, device="cuda")
{FORGED_EVENTS}
"""
ENDLESS_IN_A_ROW = "import traceback\n" + relu(
    "if 'burst' in [f.name for f in traceback.extract_stack()]: torch.cuda._sleep(1 << 60)\nreturn x.relu()"
)


@pytest.mark.gpu
def test_memory_kept_from_the_judge_is_no_way_round_its_clock(judged, problem):
    result = judged(problem("1/19"), HOARDS, device="cuda", workload="small")
    assert result.status is Status.OUT_OF_MEMORY or result.rule == "forged_clock", result.message


A_FIFTH_OF_THE_MEMORY = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x): return x.sum(1)
def get_inputs(): return [torch.rand(torch.cuda.get_device_properties(0).total_memory // 20 // 4096, 4096)]
def get_init_inputs(): return []
"""


@pytest.mark.gpu
def test_inputs_that_take_a_fifth_of_the_memory_are_not_too_large_for_the_judges_clock(judged, write_problem):
    source = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.sum(1)"
    result = judged(write_problem(A_FIFTH_OF_THE_MEMORY), source, device="cuda", track="open")
    assert result.status is Status.OK and result.timing["cross_check"]["calls"] == 1, (result.message, result.timing)


@pytest.mark.gpu
def test_a_kernel_that_ends_only_outside_of_a_burst_is_a_timeout(judged, problem):
    result = judged(problem("1/19"), ENDLESS_IN_A_ROW, device="cuda", workload="small", timeout_s=10)
    assert result.status is Status.TIMEOUT and "calls in a row" in result.message, result.message


def test_limits_are_checked_between_calls_in_a_row_that_are_each_too_short_for_it(judged, problem, monkeypatch):
    """3 GB were taken and given back within one burst, under a limit of 1 GB."""
    done, ask, check = [], Worker.request, Worker.check_limits
    monkeypatch.setattr(Worker, "request", lambda self, what, s: done.append(what["op"]) or ask(self, what, s))
    noted = lambda self, **how: done.append(how.get("runs")) or check(self, **how)  # noqa: E731
    monkeypatch.setattr(Worker, "check_limits", noted)
    assert judged(problem("1/19"), relu("return x.relu()")).status is Status.OK
    assert done.count("burst") > 10
    assert all(before is False for before, op in zip(done, done[1:]) if op == "burst")


@pytest.mark.gpu
def test_a_kernel_left_running_beside_the_baseline_is_found(judged, problem):
    result = judged(problem("1/1"), SLOW_BESIDE, device="cuda")
    assert result.status is Status.REJECTED and result.rule in ("slowed_baseline", "forged_clock"), result


# More launches than a queue holds, so that they are in its times.
MANY_LAUNCHES = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        for _ in range(2000): x = x + 1
        return x
def get_inputs(): return [torch.rand(1 << 16)]
def get_init_inputs(): return []
"""
MANY_LAUNCHES_ALIKE = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        for _ in range(2000): x = x + 1
        {after}
        return x
"""
# One block, on another stream: next to nothing to the candidate, a slice of time in two to whoever else is there.
SLEEPS_BESIDE = """
stream = torch.cuda.Stream()
torch.cuda.synchronize = lambda *_: torch.cuda.current_stream().synchronize()
def sleep():
    with torch.cuda.stream(stream): torch.cuda._sleep(200_000_000)
"""


@pytest.mark.gpu
def test_who_has_the_launches_of_the_baseline_is_even_with_it(judged, write_problem):
    source = MANY_LAUNCHES_ALIKE.format(after="")
    result = judged(write_problem(MANY_LAUNCHES), source, device="cuda", track="open")
    assert result.status is Status.OK and not result.baselines["eager"]["queue_full"], result.message
    assert 0.7 < result.speedup < 1.4, "launches take 1.5 times as long from one minute to the next"


@pytest.mark.gpu
def test_a_kernel_left_running_beside_a_baseline_with_launches_in_its_times_gains_nothing(judged, write_problem):
    source = MANY_LAUNCHES_ALIKE.format(after="sleep()") + SLEEPS_BESIDE
    result = judged(write_problem(MANY_LAUNCHES), source, device="cuda", track="open")
    assert result.status is Status.REJECTED or result.speedup < 1.15, result


@pytest.mark.gpu
def test_the_time_of_an_output_that_lies_transposed_in_memory_is_believed(judged, problem):
    result = judged(problem("1/19"), relu("return x.t().contiguous().relu_().t()"), device="cuda", track="open")
    assert result.status is Status.OK, result.message


@pytest.mark.gpu
def test_three_clocks_agree_on_an_honest_kernel(judged, problem):
    source = RELU.format(body="return a @ b").replace("self, x", "self, a, b")
    result = judged(problem("1/1"), source, device="cuda", track="open")
    assert result.status is Status.OK, result.message
    timing = result.timing
    assert timing["profile"]["span_ms"] == pytest.approx(timing["median_ms"], rel=0.03)
    assert timing["cross_check"]["call_ms"] == pytest.approx(timing["median_ms"], rel=0.1)
    assert timing["profile"]["launches"] == 1 and "gemm" in timing["profile"]["kernels"][0]["name"]


@pytest.mark.gpu
@pytest.mark.parametrize("problem_id", ["1/1", "1/19", "1/95", "2/76", "3/43", "3/48"])
def test_a_reference_against_itself_is_even_on_a_gpu(judged, problem, problem_id):
    own = problem(problem_id)
    source = own.path.read_text().replace("class Model(", "class ModelNew(")
    result = judged(own, source, device="cuda", track="open")
    assert result.status is Status.OK, result.message
    assert 0.95 < result.speedup < 1.05


CLAIMS_TO_VARY = """
import time
import torch
from harness.timing import wall_clock
run, rounds = wall_clock.WallClock.run, []
def claims(*arguments, **named):
    played = run(*arguments, **named)
    rounds.append(played)
    time.sleep(0.65)
    played.queue_full = False
    played.times_ms[:] = {0: [1e-3], 1: [1e3]}.get(len(rounds) % 3, [4 * played.times_ms[0]]) * len(played.times_ms)
    return played
wall_clock.WallClock.run = claims
class ModelNew(torch.nn.Module):
    def forward(self, x):
        for _ in range(60):
            y = x.clamp(min=0)
        return y
"""


@pytest.mark.slow
def test_a_slow_kernel_is_no_tie_by_claims_of_single_rounds(judged, problem):
    """One that claimed a second ended sampling after three, and of three rounds none had a spread: 0.02x was a tie."""
    result = judged(problem("1/19"), CLAIMS_TO_VARY)
    assert result.status is Status.REJECTED or result.baselines["eager"]["verdict"] in ("slower", "unstable")
    assert result.timing["queue_full"] and not result.timing["interrupted_rounds"]


def test_a_problem_that_fails_beside_a_candidate_is_tried_again():
    """A candidate that was wrong only where the reference has no value, or had it fail, withdrew by that."""
    with pytest.raises(MachineFault, match="it returns NaN"), evaluate_module._beside_candidate():
        raise ProblemError("it returns NaN")


@pytest.mark.parametrize("text", ["\x1b[2J\x01" * 70_000, "a" * 250_000, "\u4e2d" * 100_000])
def test_a_message_and_a_log_to_which_words_were_added_keep_their_limits(tmp_path, text):
    """A log had 393,173 bytes and raw escapes in its record."""
    failure = CandidateFailure(Status.CRASHED, text)
    failure.message += text
    failure.log = text
    result = SimpleNamespace(conditions={})
    record.add_failure(result, SimpleNamespace(root=tmp_path), failure)
    assert len(json.dumps(result.message)) <= MAX_MESSAGE_BYTES and len(json.dumps(result.log)) <= MAX_LOG_BYTES
    assert "\x1b" not in result.message + result.log and "characters left out" in result.log


@pytest.mark.parametrize(
    "error",
    [MemoryError(), OSError(28, "No space left on device"), BlockingIOError(11, "Resource temporarily unavailable"),
     RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")],
)  # fmt: skip
def test_a_compiled_baseline_for_which_the_machine_is_too_small_is_not_left_out(error):
    """The speedup was over the next one, which is slower: a candidate can take the disk, or all processes."""

    def fails(*_):
        raise error

    session = SimpleNamespace(worker=SimpleNamespace(check_limits=lambda **_: None), time_model=fails)
    with pytest.raises(type(error)):
        _runs(session, "compile", None, SimpleNamespace(baselines={}), lambda text: None)


@pytest.mark.parametrize("killed", [True, False])
def test_who_fails_on_a_held_out_workload_as_the_machine_may_have_is_evaluated_once_more(monkeypatch, killed):
    """Nobody looked at the machine there, and a candidate that the system had killed counted as broken."""
    made, looked = [], []

    def evaluated(*_):
        first = not made
        made.append(1)
        status = Status.OK if first else Status.CRASHED
        one = Result("1/19", "relu", {"name": "small"}, {"name": "a", "sample": 0}, status)
        one.conditions |= {"killed_by": "SIGKILL"} if killed and not first else {}
        return one

    for name, stand_in in {"evaluate": evaluated, "decode_solution": id, "decode_artefact": id}.items():
        monkeypatch.setattr(server_module, name, stand_in)
    judge = server_module._Judge(Conditions(torch.device("cpu")), None, None, 2, 7)
    monkeypatch.setattr(judge, "_check_machine", lambda: looked.append(1))
    file = next(one for one in find_problems(Path(__file__).parents[3] / "problems") if str(one.id) == "1/19")
    answer = judge.answer({"problem": encode_problem(file), "workload": "small", "solution": 1, "artefact": 1})
    assert answer["again"] is killed and len(looked) == 2 == len(answer["result"]["held_out"])
    assert answer["killed"] == ("SIGKILL" if killed else "")


def test_the_verdict_on_who_had_the_machine_fail_does_not_depend_on_the_machine(monkeypatch):
    """The reference worked in its place. With a full disk there was no record, and what was wrong was withdrawn."""
    def full():
        raise MachineFault("no room in /tmp: 0 MB are free")

    monkeypatch.setattr(server_module, "check_disk", full)
    monkeypatch.setattr(server_module, "decode_solution", lambda job: read_solution(path, problem=file.id))
    file = next(one for one in find_problems(Path(__file__).parents[3] / "problems") if str(one.id) == "1/19")
    path = file.path
    judge = server_module._Judge(Conditions(torch.device("cpu")), None, None, 0, 7)
    failure = {"status": "crashed", "message": "the machine failed three times with it", "log": ""}
    job = {"problem": encode_problem(file), "workload": "small", "solution": 1, "failure": failure}
    assert "no room" in judge.answer(job)["unevaluated"]
    assert judge.answer(job | {"confirmed": True})["result"]["status"] == "crashed"


def test_a_library_has_the_weights_of_the_reference_whatever_it_says():
    """It answered that it has its own, and was compared with initial ones only."""
    stages = record.Stages()
    evaluation = evaluate_module.Evaluation(None, Artefact(library=Path("x.so")), None, None, print, stages)
    asked = []
    session = SimpleNamespace(
        reference=SimpleNamespace(
            setting=SimpleNamespace(workload=SimpleNamespace(problem=SimpleNamespace(allclose=False)), timed="mixed")
        ),
        criteria=[SimpleNamespace(tolerance=1e-4)],
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate_module.Evaluation, "load", lambda self, session: {"weights": "seeded", "setup_s": 0.1})
        patch.setattr(evaluate_module, "check", lambda session, copied, *_: asked.append(copied) or [])
        result = Result("1/19", "relu", {"name": "small"}, {"name": "a", "sample": 0}, Status.OK)
        evaluation._check(session, result)
    assert asked == [True] and result.correctness["weights"] == "copied"


@pytest.mark.parametrize("library", [None, Path("solution.so")])
def test_nothing_is_built_for_a_library(tmp_path, library):
    """Its native code wrote a request of its own, and had so much built that its library left the cache."""
    (path := tmp_path / "1_19.py").write_text("")
    server = SimpleNamespace(fork=lambda env, memory, fds, builder, **more: builder)
    problem = SimpleNamespace(path=path)
    setting = SimpleNamespace(workload=SimpleNamespace(problem=problem))
    prepared = SimpleNamespace(reference=SimpleNamespace(setting=setting), outbox=SimpleNamespace(fds=[]))
    evaluation = evaluate_module.Evaluation(
        read_solution(path), Artefact(library=library), Conditions(torch.device("cpu")), server, print, None
    )
    builder = object()
    assert evaluation.start_worker(prepared, [], builder) is (None if library else builder)
