"""On a GPU: a program as a function of tensors, and its header in an extension of PyTorch."""

import os

import pytest
import torch

from kernelbench.ucutlass import check
from kernelbench.ucutlass.codegen import generate, name_of
from kernelbench.ucutlass.codegen.build import reference
from kernelbench.ucutlass.codegen.build.compiler import TEMPLATE_FLAGS, include_folders
from kernelbench.ucutlass.codegen.build.library import load

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

PROGRAM = """gemm().with_dtype(input=fp16, acc=fp32, output=fp16)
.with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor).with_arch(sm_80).with_tile(m=128, n=128, k=32)
>> bias() >> gelu()"""


@pytest.fixture
def tensors():
    torch.manual_seed(0)
    shapes = {"A": (256, 128), "B": (384, 128), "bias": (384,)}
    return {name: torch.randn(shape, device="cuda", dtype=torch.float16) for name, shape in shapes.items()}


def wanted(tensors):
    return reference.expected(check(PROGRAM), tensors)["D"]


def test_a_program_is_a_function_of_tensors(tensors, tmp_path):
    linear = load(PROGRAM, tmp_path)
    torch.testing.assert_close(linear(*tensors.values()).double(), wanted(tensors), rtol=2e-3, atol=2e-3)
    doubled = load(PROGRAM.partition(">>")[0], tmp_path)(tensors["A"], tensors["B"], alpha=2.0)
    product = tensors["A"].double() @ tensors["B"].double().t()
    torch.testing.assert_close(doubled.double(), 2 * product, rtol=2e-3, atol=2e-2)


def test_a_tensor_of_another_shape_or_type_is_refused_by_name(tensors, tmp_path):
    linear = load(PROGRAM, tmp_path)
    with pytest.raises(ValueError, match="bias must have shape"):
        linear(tensors["A"], tensors["B"], tensors["bias"][:8])
    with pytest.raises(ValueError, match="A must have shape .* torch.float16"):
        linear(tensors["A"].float(), tensors["B"], tensors["bias"])


def test_the_header_works_in_load_inline(tensors, tmp_path, monkeypatch):
    from torch.utils.cpp_extension import load_inline

    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    os.makedirs(tmp_path / "extensions", exist_ok=True)
    program = check(PROGRAM)
    name = name_of(program)
    (tmp_path / f"{name}.h").write_text(generate(program))
    declaration = "at::Tensor linear(at::Tensor a, at::Tensor b, at::Tensor bias)"
    module = load_inline(
        "ucutlass_linear", f"{declaration};",
        f'#include "{name}.h"\n{declaration} {{ return {name}::kernel(a, b, bias); }}',
        functions=["linear"], extra_include_paths=[str(tmp_path), *map(str, include_folders())],
        extra_cuda_cflags=list(TEMPLATE_FLAGS),
    )  # fmt: skip
    torch.testing.assert_close(module.linear(*tensors.values()).double(), wanted(tensors), rtol=2e-3, atol=2e-3)
    with pytest.raises(RuntimeError, match="bias has 8 elements in dimension 0, expected 384"):
        module.linear(tensors["A"], tensors["B"], tensors["bias"][:8])
