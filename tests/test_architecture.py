"""Who may import whom, and that an installed wheel is whole."""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STANDARD = set(sys.stdlib_module_names) | {"__future__"}
ALLOWED = {
    "problems": {"torch"},
    "harness": {"harness", "torch", "numpy", "pynvml", "tvm_ffi", "triton"},  # which PyTorch brings for CUDA
    # fmt: off
    "kernelbench": {"harness", "kernelbench", "torch", "numpy", "click", "tabulate", "tqdm",
                    "matplotlib", "ray", "pyarrow", "openai", "tomllib", "tomli", "lark",
                    "mcp", "starlette", "uvicorn", "prometheus_client", "httpx2", "sklearn"},
    # fmt: on
}
# Of the adapters, each may import the package that it is for.
ADAPTERS = {
    "inspect_ai": {"inspect_ai", "anyio"},
    "openenv": {"openenv", "pydantic"},
    "openevolve": {"openevolve"},
    "verifiers": {"verifiers"},
    "verifiers_environment": {"verifiers", "datasets"},
}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_stay_within_what_the_architecture_allows(package):
    for path in (ROOT / package).rglob("*.py"):
        if path.parent.parent.name == "redteam":  # solutions, which are nobody's code
            continue
        extra = set(imported(path)) - ALLOWED[package] - STANDARD
        if path.parent.name == "integrations":
            extra -= ADAPTERS.get(path.stem, set())
        assert not extra, f"{path.relative_to(ROOT)} imports {extra}"


MOST_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS, MOST_MODULES = 350, 60, 8, 12
MOST_LOOSE = {ROOT / "harness": 8, ROOT / "kernelbench": 10}
MODULES = [
    path
    for package in ("harness", "kernelbench")
    for path in sorted((ROOT / package).rglob("*.py"))
    if path.parent.parent.name != "redteam"  # solutions, which are nobody's code
]


def functions(path):
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def parameters(function):
    named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [argument for argument in named if argument.arg not in ("self", "cls")]


def test_modules_and_functions_are_short():
    lines = {path: len(path.read_text().splitlines()) for path in MODULES}
    assert not {path for path, count in lines.items() if count > MOST_LINES}
    long = [
        f"{path}:{function.name}"
        for path in MODULES
        for function in functions(path)
        if function.end_lineno - function.lineno >= MOST_FUNCTION_LINES
    ]
    assert not long


def test_functions_outside_the_command_line_take_few_parameters():
    many = [
        f"{path}:{function.name}"
        for path in MODULES
        if "cli" not in path.parts
        for function in functions(path)
        if len(parameters(function)) > MOST_PARAMETERS
    ]
    assert not many


def test_no_folder_holds_more_modules_than_one_can_take_in():
    loose = {}
    for path in MODULES:
        loose.setdefault(path.parent, []).append(path.stem)
    for folder, modules in loose.items():
        count = len([module for module in modules if not module.startswith("__")])
        assert count <= MOST_LOOSE.get(folder, MOST_MODULES), folder


def test_no_two_test_files_share_a_name():
    """Folders of tests are no packages: pytest collects one of two modules of the same name only."""
    names = sorted(path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py")
    assert len(names) == len(set(names)), [name for name in set(names) if names.count(name) > 1]


def test_no_two_modules_import_each_other_in_a_circle():
    known = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
    arrows = {name: at_import(path, known) & known.keys() - {name} for name, path in known.items()}
    while free := [name for name, others in arrows.items() if not others & arrows.keys()]:
        for name in free:
            del arrows[name]
    assert not arrows


def at_import(path, known):
    """Modules that a module names anywhere: at its top, in its functions, and for a type checker alone."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {full if full in known else node.module for full in names.values()}
    return found


def copied(to):
    """A copy of the checkout: a build leaves nothing in it."""
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    for name in files:
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            (to / name).write_bytes((ROOT / name).read_bytes())
    return to


def test_an_editable_installation_imports_nothing_from_the_working_directory(tmp_path):
    """A folder there, of a name that setuptools puts into sys.path, had a sitecustomize.py that Python ran."""
    build = "import sys; from setuptools import build_meta; build_meta.build_editable(sys.argv[1])"
    copy, site, work = (tmp_path / name for name in ("source", "site", "work"))
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=copied(copy), check=True, capture_output=True)
    (wheel,) = tmp_path.glob("kernelbench-*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    look = "import os, site, sys; site.addsitedir(sys.argv[1]); import kernelbench; print(kernelbench.__file__)\n"
    look += "print([path for path in sys.path if not os.path.isabs(path)])"
    work.mkdir()
    done = subprocess.run([sys.executable, "-I", "-S", "-c", look, site], cwd=work, capture_output=True, text=True)
    assert done.stdout.splitlines() == [str(copy / "kernelbench" / "__init__.py"), "[]"], done.stderr


@pytest.mark.slow
def test_an_installed_wheel_has_the_problems_and_runs_from_anywhere(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    copy = copied(tmp_path / "source")
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(copy)], check=True)
    (wheel,) = tmp_path.glob("kernelbench-*.whl")
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True)

    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from kernelbench.cli import main; main()"

    def kb(*arguments):
        command = [sys.executable, "-I", "-c", code, str(site), *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert "square_matmul" in kb("problems", "list", "1/1").stdout
    done = kb("eval", "--solutions", ROOT / "examples" / "cpp", "--device", "cpu", "--out", tmp_path / "run")
    assert done.returncode == 0 and " ok " in done.stdout, done.stdout + done.stderr
    assert "template" in kb("solve", "--list").stdout
    solved = kb("solve", "--solver", "template", "--problems", "1/19", "--device", "cpu", "-o", tmp_path / "solved")
    assert solved.returncode == 0, solved.stderr
    assert kb("ucutlass", "check", site / "kernelbench" / "ucutlass" / "gallery" / "figure1.dsl").returncode == 0
    assert kb("report", tmp_path / "run", "-o", tmp_path / "report.html").returncode == 0
    assert str(site) in subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(site)!r}); "
         "from kernelbench.suite import problem_root; print(problem_root())"],
        capture_output=True, text=True,
    ).stdout  # fmt: skip
