"""Languages: each is told from a source, has names of its own for kernels, and folders for what its calls compile.

What needs a language's package is skipped without it. None of these tests needs a GPU.
"""

import importlib.util
import io
import os
from pathlib import Path

import pytest
import torch
from linear_time import MEGABYTE, in_linear_time

from harness.compile import BuildContext, build
from harness.compile.artefact import ToolchainError
from harness.compile.toolchain import nvcc
from harness.integrity.origin import Origin
from harness.result import Status
from harness.solution import languages
from harness.solution.discover import discover, read_solution

EXAMPLES = Path(__file__).parents[3] / "examples"
KERNELS = {  # as compiled from the examples, or by a kernel of a library in the same language
    "cute_dsl": (
        "kernel_cutlass_relu_tiles_tensorptrf32gmemalign16o426214414_tensorptrf32gmemalign16o426214414_262144_0",
        "kernel_cutlass_kernel_flash_attncuteFlashAttentionForwardSm90_object_at__tensor0000o1112_0",
    ),
    "cutile": ("relu_tiles_Kt1_A1f32_1l0_A1f32_1l0_I1024", "rms_norm_tiles_Kt1_A1f32_1l0_A1f32_1l0_I1024"),
    "helion": ("_helion_relu_tiles", "_helion_rms_norm"),
    "tilelang": ("relu_tiles_kernel", "flash_forward_kernel"),
}


def example(name, suffix=".py"):
    return read_solution(EXAMPLES / name / f"relu{suffix}")


def load(name):
    """Import an example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / name / "relu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_language_has_an_example_that_is_told_to_be_written_in_it():
    found = {solution.language: solution for solution in discover(EXAMPLES).solutions}
    assert set(languages.languages()) <= set(found)


@pytest.mark.parametrize(
    "source, name",
    [
        ("import cutlass.cute as cute", "cute_dsl"), ("from cutlass import cute", "cute_dsl"),
        ("from cuda import tile as ct", "cutile"), ("import cuda.tile", "cutile"),
        ("import helion\nimport triton", "helion"), ("import tilelang.language as T", "tilelang"),
        ("import triton", "triton"), ("import cuda", None), ("from . import triton", None),
        ("import tritonclient", None),
    ],
)  # fmt: skip
def test_a_python_source_is_told_by_what_it_imports(tmp_path, source, name):
    path = tmp_path / "1_19.py"
    path.write_text(source)
    solution = read_solution(path)
    assert (solution.language, solution.device) == ((name, "cuda") if name else ("pytorch", "any"))


@pytest.mark.parametrize("suffix, device, other", [(".cu", "cuda", "cuda"), (".cpp", "cpu", "cpp")])
def test_a_library_is_told_by_what_it_includes(tmp_path, suffix, device, other):
    path = tmp_path / f"1_19{suffix}"
    path.write_text("  #  include <tvm/ffi/tvm_ffi.h>\n")
    assert (read_solution(path).language, read_solution(path).device) == ("tvm_ffi", device)
    path.write_text("// #include <tvm/ffi/tvm_ffi.h>\n")
    assert read_solution(path).language == other


@pytest.mark.parametrize("name", KERNELS)
def test_its_own_kernels_are_told_from_those_of_a_library(name):
    own, foreign = KERNELS[name]
    origin = Origin.of(example(name))
    assert origin.has(own) and not origin.has(foreign)
    assert not Origin.of(read_solution(EXAMPLES / "triton" / "softmax.py")).has(own)


def test_a_method_of_cute_dsl_is_known_by_its_class(tmp_path):
    path = tmp_path / "1_19.py"
    path.write_text("import cutlass.cute as cute\nclass Relu:\n    @cute.kernel\n    def kernel(self, x): pass\n")
    origin = Origin.of(read_solution(path))
    assert origin.has("kernel_cutlass_kernel_solutionRelu_object_at__tensorptrf32gmemalign16o1_0")
    assert not origin.has(KERNELS["cute_dsl"][1])


@pytest.mark.parametrize("name", ["cute_dsl", "cutile", "helion", "tilelang", "triton"])
def test_a_missing_package_is_the_machines_lack_and_says_how_to_get_it(name, server, monkeypatch):
    known = languages.languages()[name]
    monkeypatch.setattr(type(known), "installed", lambda self: "")
    path = EXAMPLES / name / ("softmax.py" if name == "triton" else "relu.py")
    with pytest.raises(ToolchainError, match=known.advice.split(",")[0].replace("[", r"\[")):
        build(read_solution(path), BuildContext(server, None, torch.__version__, 60, 1 << 30))


@pytest.mark.parametrize("name", ["cute_dsl", "cutile", "helion", "tilelang", "triton"])
def test_what_its_calls_compile_stays_in_folders_of_the_candidate(name, server, monkeypatch):
    known = languages.languages()[name]
    monkeypatch.setattr(type(known), "installed", lambda self: "1.0")
    path = EXAMPLES / name / ("softmax.py" if name == "triton" else "relu.py")
    artefact = build(read_solution(path), BuildContext(server, "9.0", torch.__version__, 60, 1 << 30))
    assert set(artefact.env) == set(known.caches) and all(folder.is_dir() for folder in artefact.writable)
    assert len(artefact.writable) == len(known.caches)


@pytest.mark.slow
def test_a_library_with_tvm_ffi_is_called_with_tensors(judged, problem):
    pytest.importorskip("tvm_ffi", reason="pip install apache-tvm-ffi")
    source = (EXAMPLES / "tvm_ffi" / "relu.cpp").read_text()
    found = judged(problem("1/19"), source, ".cpp")
    assert found.status is Status.OK, found.message
    assert found.solution["language"] == "tvm_ffi"
    raising = source.replace("== batch_size * dim", "== 1")
    found = judged(problem("1/19"), raising, ".cpp")
    assert found.status is Status.RUNTIME_ERROR and "x has 262144 elements" in found.message


@pytest.mark.slow
def test_a_cuda_library_with_tvm_ffi_is_built(server):
    pytest.importorskip("tvm_ffi", reason="pip install apache-tvm-ffi")
    if nvcc() is None:
        pytest.skip("no nvcc")
    artefact = build(example("tvm_ffi", ".cu"), BuildContext(server, "9.0", torch.__version__, 600, 4 << 30))
    assert Origin([], [artefact.library.read_bytes()]).has("relu4(float4 const*, float4*, long)")
    assert b"__tvm_ffi_solution" in artefact.library.read_bytes()


def test_helion_in_tritons_interpreter_passes_the_judge(judged, problem):
    for package in ("helion", "triton"):
        pytest.importorskip(package, reason=f"pip install {package}")
    source = (EXAMPLES / "helion" / "relu.py").read_text()
    interpreted = "# kb: device=cpu\nimport os\nos.environ['TRITON_INTERPRET'] = '1'\n" + source
    found = judged(problem("1/19"), interpreted, timeout_s=200)
    assert found.status is Status.OK, found.message


def test_the_example_of_cute_dsl_compiles_to_a_kernel_of_that_name(monkeypatch):
    cutlass = pytest.importorskip("cutlass", reason="pip install nvidia-cutlass-dsl")
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    x, y = (make_fake_compact_tensor(cutlass.Float32, (1 << 20,), assumed_align=16) for _ in range(2))
    compiled = cutlass.cute.compile(load("cute_dsl").relu, x, y, make_fake_stream())
    assert list(compiled.kernel_info) == [KERNELS["cute_dsl"][0]]


def test_the_example_of_tilelang_compiles_to_a_kernel_of_that_name():
    tilelang = pytest.importorskip("tilelang", reason="pip install tilelang, in an environment of its own")
    if not os.environ.get("CUDA_HOME"):
        pytest.skip("TileLang finds nvcc by CUDA_HOME")
    target = {"kind": "cuda", "arch": "sm_90"}
    with tilelang.tvm.target.Target(target):
        lowered = tilelang.lower(load("tilelang").relu_of.get_tir(1 << 20), target=target)
    assert f"__global__ void __launch_bounds__(256, 1) {KERNELS['tilelang'][0]}(" in lowered.kernel_source


def test_the_example_of_cutile_compiles_to_a_kernel_of_that_name():
    ct = pytest.importorskip("cuda.tile", reason="pip install cuda-tile")
    from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

    array = ArrayConstraint(
        ct.float32, 1, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False
    )
    signature = KernelSignature([array, array, 1024], CallingConvention.cutile_python_v1())
    compiled = io.BytesIO()
    export_kernel(
        load("cutile").relu_tiles, [signature], compiled, gpu_code="sm_100", output_format="tileir_bytecode",
        bytecode_version="13.1",
    )  # fmt: skip
    assert KERNELS["cutile"][0].encode() in compiled.getvalue()


@pytest.mark.parametrize("piece", ["\n", "#", "# \n", "#include\n", "#include <"])
def test_a_megabyte_of_includes_is_read_in_linear_time(piece):
    with in_linear_time():
        assert languages.of_library(piece * (MEGABYTE // len(piece))) is None
