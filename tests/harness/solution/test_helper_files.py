"""Helpers beside a Python solution: they are imported, count for what the solution is, or the message says why not."""

import pytest

from harness.result import Status
from harness.solution.discover import discover, is_solution, read_solution
from harness.solution.helper_files import parsed, taken_in
from harness.solution.visible_files import own_files

SOLUTION = "import torch\nfrom {module} import relu\nclass ModelNew(torch.nn.Module):\n" \
           "    def forward(self, x): return relu(x)\n"  # fmt: skip
INLINE = '''
from torch.utils.cpp_extension import load_inline
relu = load_inline("kb_helped", "at::Tensor relu(at::Tensor x) { return x.clamp_min(0); }", functions=["relu"]).relu
'''


@pytest.mark.slow
@pytest.mark.parametrize(
    "helper", ["def relu(x): return x.clamp(min=0)", INLINE], ids=["PyTorch", "one that builds an extension"]
)
def test_a_module_beside_a_solution_can_be_imported_and_leaves_nothing_there(judged, problem, tmp_path, helper):
    (tmp_path / "fast.py").write_text(helper)
    result = judged(problem("1/19"), SOLUTION.format(module="fast"))
    assert result.status is Status.OK, result.message
    assert result.solution["helpers"] and not (tmp_path / "__pycache__").exists()


@pytest.mark.parametrize(
    "module, advice",
    [("absent.part", "there is no absent.py beside candidate.py"), (".fast", "a solution is no package")],
)
def test_an_import_that_fails_says_where_a_module_has_to_lie(judged, problem, tmp_path, module, advice):
    (tmp_path / "fast.py").write_text("def relu(x): return x.clamp(min=0)")
    result = judged(problem("1/19"), SOLUTION.format(module=module))
    assert result.status is Status.LOAD_ERROR and advice in result.message


def test_a_neighbour_does_not_take_the_place_of_an_installed_module(judged, problem, tmp_path):
    (tmp_path / "colorsys.py").write_text("raise ValueError('the wrong one')")
    result = judged(problem("1/19"), "import colorsys\n" + SOLUTION.format(module="torch"))
    assert result.status is Status.OK, result.message


@pytest.mark.parametrize("name", ["gone_library.py", "gone_library/other.py", "gone_library/__init__.py"])
def test_a_neighbour_is_not_found_where_somebody_asks_for_a_library_that_is_not_there(judged, problem, tmp_path, name):
    """Its name can be seen, but it can be read by nobody else: libraries that ask for others expect ImportError."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("raise ValueError('the wrong one')")
    asks = "import importlib\n" \
           "try: importlib.import_module('gone_' + 'library')\nexcept ImportError: pass\nelse: 0 / 0\n"
    result = judged(problem("1/19"), asks + SOLUTION.format(module="torch"))
    assert result.status is Status.OK, result.message


def test_the_language_of_a_helper_is_that_of_the_solution(tmp_path):
    (tmp_path / "kernels.py").write_text("import triton")
    (tmp_path / "1_19.py").write_text("import kernels")
    solution = read_solution(tmp_path / "1_19.py")
    assert (solution.language, solution.device) == ("triton", "cuda")


def test_texts_that_are_no_names_hide_no_file(tmp_path):
    """The system takes no name that is too long: that of one text was an error, and no file was the solution's."""
    (tmp_path / "helper.h").write_text("int x;\n")
    texts = ["words " * 100 + "in kernel.py", "nul \0.h", "/".join("a" * 300) + ".py", "helper.h"]
    source = "\n".join(f"T{i} = {text!r}" for i, text in enumerate(texts))
    found = taken_in(tmp_path / "1_19.py", source, parsed(source), tmp_path, is_solution)
    assert {file.name for file in found} == {"helper.h"}


@pytest.mark.parametrize("text", ["import triton", "# -*- coding: latin-1 -*-"], ids=["GPU", "encoding"])
@pytest.mark.parametrize("name", ["torch", "maybe_there"])
def test_a_neighbour_that_is_named_like_an_import_says_nothing_of_a_solution(tmp_path, text, name):
    """A torch.py kept all others from being evaluated: they needed a GPU, were refused, or lost their helper."""
    (tmp_path / "helper.py").write_text("")
    (tmp_path / f"{name}.py").write_text(f"# kb: problem=1/20\n{text}\n")
    (tmp_path / "1_19.py").write_text("import torch, helper\ntry: import maybe_there\nexcept ImportError: ...\n")
    solution = next(one for one in discover(tmp_path).solutions if one.name == "1_19.py")
    assert (solution.language, solution.device, solution.refused) == ("pytorch", "any", "")
    assert [file.name for file, _ in solution.taken_in] == ["helper.py"]
    assert [file.name for file in own_files(solution)] == ["1_19.py", "helper.py"]


def test_a_header_that_is_too_large_to_be_its_own_keeps_no_solution_from_being_built(tmp_path):
    """It had the name of one of the system's."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "extension.h").write_text("//" + "x" * (4 << 20))
    (tmp_path / "helper.h").write_text("")
    (tmp_path / "1_19.py").write_text('x = "#include <torch/extension.h>", "helper.h"')
    solution = read_solution(tmp_path / "1_19.py")
    assert not solution.refused and [file.name for file, _ in solution.taken_in] == ["helper.h"]


def test_an_installed_module_wins_over_one_of_its_name_beside_a_solution(tmp_path):
    (tmp_path / "json.py").write_text("import triton")
    (tmp_path / "1_19.py").write_text("import json")
    assert read_solution(tmp_path / "1_19.py").language == "pytorch"


def test_a_folder_of_the_checkout_is_no_installed_module(tmp_path):
    """``from results import relu`` was a load_error in a checkout, as that has folders of such names."""
    (tmp_path / "results.py").write_text("import triton")
    (tmp_path / "1_19.py").write_text("from results import relu")
    solution = read_solution(tmp_path / "1_19.py")
    assert [file.name for file, _ in solution.taken_in] == ["results.py"] and solution.language == "triton"
