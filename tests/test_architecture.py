"""Who may import whom, and that an installed wheel is whole."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STANDARD = set(sys.stdlib_module_names) | {"__future__"}
ALLOWED = {
    "problems": {"torch"},
    "harness": {"harness", "torch", "numpy", "pynvml"},
    # fmt: off
    "kernelbench": {"harness", "kernelbench", "torch", "numpy", "click", "tabulate", "tqdm",
                    "matplotlib", "ray", "pyarrow", "openai"},
    # fmt: on
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
        assert not extra, f"{path.relative_to(ROOT)} imports {extra}"


def test_an_installed_wheel_has_the_problems_and_runs_from_anywhere(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    # a copy, so that the build leaves nothing in the checkout
    copy = tmp_path / "source"
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    for name in files:
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
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
    assert kb("report", tmp_path / "run", "-o", tmp_path / "report.html").returncode == 0
    assert str(site) in subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(site)!r}); "
         "from kernelbench.suite import problem_root; print(problem_root())"],
        capture_output=True, text=True,
    ).stdout  # fmt: skip
