"""Static findings: what is found, on which line; what is none, although it reads like one."""

import pytest
from click.testing import CliRunner

from harness.integrity.static import findings
from harness.integrity.static.rules import RULES
from harness.problem.module import ProblemId
from harness.result import Status
from harness.solution.discover import read_solution
from kernelbench.cli import main
from kernelbench.redteam.catalogue import EXPLOITS, FOLDER


@pytest.fixture
def found(tmp_path):
    """(line, rule) of each finding in a source."""

    def found(source, suffix=".py", precision="fp32"):
        path = tmp_path / f"candidate{suffix}"
        path.write_text(source)
        return [(f.line, f.rule) for f in findings(read_solution(path, problem=ProblemId(1, 1)), precision)]

    return found


PYTHON = {
    "def f(:": "unreadable",
    "import gc": "introspection",
    "from sys import _getframe as f": "introspection",
    "import sys\nsys.modules['x']": "introspection",
    "(lambda: 0).__code__": "introspection",
    "import torch as t\nt.allclose = lambda *a: True": "monkey_patch",
    "import torch\nsetattr(torch, 'all' + 'close', 1)": "monkey_patch",
    "import time as clock\nclock.perf_counter = None": "monkey_patch",
    "import threading": "threads",
    "import socket": "network",
    "import os\nos._exit(0)": "process_control",
    "open('x')": "files",
    "import ctypes": "foreign_code",
    "exec('x')": "dynamic_code",
    "import torch\ngetattr(torch, 're' + 'lu')": "dynamic_code",
    "from reference import Model": "reference",
    "class ModelNew(Model): pass": "reference",
    "import torch\nclass Lazy(torch.Tensor): pass": "lazy_tensor",
    "import torch\ntorch.cuda.CUDAGraph()": "cuda_graph",
    "from torch.cuda import Stream": "streams",
    "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True": "global_settings",
    "def f(x, kept): return kept[x.data_ptr()]": "identity_cache",
    "def f(x, kept):\n    key = id(x), 3\n    return kept.get(key)": "identity_cache",
    "def f(x): return x.half()": "lower_precision",
    "import torch.nn.functional as F\ndef f(x): return F.relu(x)": "library_call",
    "def f(a, b): return a @ b": "library_call",
    "from torch import matmul as mm\ndef f(a, b): return mm(a, b)": "library_call",
    "import torch\ntry: own()\nexcept Exception: torch.relu(x)": "fallback",
    "import triton\n@triton.jit\ndef kernel(x): pass": "unlaunched_kernel",
    "import torch\ndef f(x): return x.to(memory_format=torch.channels_last)": "memory_format",
    "load_inline('own', '', 'k<<<dim3(a, b, c), dim3(1, 2, 3), 0>>>(x)')": "default_stream",
    "load_inline('own', '', 'k(x.data_ptr<float>())')": "assumes_contiguous",
    "load_inline('own', '', '', extra_cuda_cflags=['-O3', '--use_fast_math'])": "fast_math",
}


@pytest.mark.parametrize("source", PYTHON)
def test_python(found, source):
    assert PYTHON[source] in {rule for _, rule in found(source)}


CPP = {
    "auto f = at::relu(x);": "library_call",
    "cublasSgemm(h);": "library_call",
    "std::thread t;": "threads",
    "cudaStreamCreate(&s);": "streams",
    "cudaGraphLaunch(g, s);": "cuda_graph",
    "FILE* f = fopen(name, mode);": "files",
    "system(text);": "process_control",
    "cudaDeviceSetLimit(l, 1);": "cache_control",
    "__half x;": "lower_precision",
    "y = __expf(x);": "fast_math",
    "__global__ void __launch_bounds__(256) ghost(int* x) {}": "unlaunched_kernel",
    "template <int N> __global__ void ghost(int* x) { x[0] = N; }": "unlaunched_kernel",
}


@pytest.mark.parametrize("source", CPP)
def test_cpp_and_cuda(found, source):
    for suffix in (".cpp", ".cu"):
        assert found("\n" + source, suffix) == [(2, CPP[source])]


INNOCENT = [
    ("# import gc; torch.allclose = 1\n'''open(x), socket'''\nx = 'os._exit(0)'", ".py"),
    ("class A:\n    def system(self): self.open = 1; return self.exit", ".py"),
    ("def f(x, kept): return kept[x.shape]", ".py"),
    ("load_inline('own', '', 'k<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(x)')", ".py"),
    ("load_inline('own', '', 'k(x.data_ptr<float>())')\ndef f(x): return own.k(x.contiguous())", ".py"),
    ("load_inline('own', '', 'k(x.contiguous().data_ptr<float>())')", ".py"),
    ("try: import triton\nexcept ImportError: triton = None", ".py"),
    ("// cublasSgemm, fopen\n/* std::thread\n */ const char* s = \"fork()\"; auto r = R\"x(system())x\";", ".cu"),
    ("int system = 1; float thread = 2; a.exit(); void raise;", ".cpp"),
    ("#include <thread>\nauto y = torch::empty_like(x); at::Tensor z = at::zeros({1});", ".cpp"),
    ("template <int N> __global__ void own(int* x) {}\nvoid f() { own<3><<<1, 1>>>(x); }", ".cu"),
    ("__global__ void own(int* x);\n__global__ void own(int* x) {}\nvoid f() { cudaLaunchKernel((void*)own); }", ".cu"),
]  # fmt: skip


@pytest.mark.parametrize("source, suffix", INNOCENT)
def test_comments_strings_and_names_of_ones_own_are_no_findings(found, source, suffix):
    assert found(source, suffix) == []


def test_sources_inside_of_python_are_read_as_cpp_with_their_lines(found):
    source = (
        "from torch.utils.cpp_extension import load_inline\n"
        'CUDA = """\n'
        "// fopen\n"
        "__global__ void ghost() {}\n"
        'torch::Tensor f(torch::Tensor x) { return at::relu(x); }"""\n'
        "load_inline('x', ['int a;'], cuda_sources=[CUDA], functions=['f'])\n"
        'NOT_PASSED = "std::thread t;"\n'
    )
    assert found(source) == [(4, "unlaunched_kernel"), (5, "library_call")]


def test_a_lower_precision_is_none_where_it_was_asked_for(found):
    assert found("def f(x): return x.half()", precision="fp16") == []


@pytest.mark.parametrize("source", ["def f(:", "\0", "(" * 5000, "'" * 3, 'R"x(', "/*", "a" * 100_000])
def test_what_does_not_parse_is_no_error_and_said(found, source):
    assert {rule for _, rule in found(source)} == (set() if source.startswith("a") else {"unreadable"})
    assert found(source, ".cu") == []


def test_every_rule_is_reported_by_some_source(found):
    reported = {rule for source in PYTHON for _, rule in found(source)}
    reported |= {rule for source in CPP for _, rule in found(source, ".cu")}
    assert reported | {"clock", "environment"} >= set(RULES)


def test_a_result_holds_them_and_they_decide_nothing(judged, problem):
    source = "import gc, torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
    result = judged(problem("1/19"), source)
    assert result.status is Status.OK
    (finding,) = result.integrity["findings"]
    assert finding["rule"] == "introspection" and finding["line"] == 1 and finding["severity"] == "serious"


def test_the_command_lists_them():
    path = str(FOLDER / EXPLOITS / "07_stale_cuda_graph.py")
    done = CliRunner().invoke(main, ["findings", path])
    assert done.exit_code == 0 and "cuda_graph" in done.output and "library_call" not in done.output
    assert "library_call" in CliRunner().invoke(main, ["findings", "--all", "--json", path]).output
    assert CliRunner().invoke(main, ["findings", "setup.cfg"]).exit_code == 2
