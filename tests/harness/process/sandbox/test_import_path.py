"""Places of packages that candidates may read: not where a script lies, nor where somebody works."""

import os
import subprocess
import sys

import pytest

from harness.process.sandbox import landlock
from harness.process.sandbox.import_path import import_path, private_places
from harness.process.spawn import ROOT

PRINT = f"""
import sys
sys.path.append({str(ROOT)!r})
from harness.process.sandbox.import_path import import_path
print("\\n".join(import_path()))
"""
WORKER = f"""
import os, sys
sys.path.append({str(ROOT)!r})
from harness.process.fork_server import ForkServer
path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "candidate.py")
with ForkServer() as server, server.fork({{}}, 2 << 30, readable=[path]) as worker:
    worker.request({{"op": "import", "solution": path}}, 60)
print(worker.output.decode())
"""
CANDIDATE = """
for name in (".env", "runs/results.jsonl"):
    try:
        print("read", open(__file__.replace("candidate.py", name)).read())
    except OSError as error:
        print(error.strerror)
"""


def printed(*arguments, cwd, **env):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=os.environ | env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_packages_of_this_python_are_among_them():
    import torch

    assert os.path.dirname(os.path.dirname(torch.__file__)) in import_path()
    assert os.path.dirname(os.__file__) in import_path()


@pytest.mark.parametrize("how", ["script", "module", "command"])
def test_the_folder_of_a_script_and_the_working_directory_are_not(tmp_path, how):
    (tmp_path / "grade.py").write_text(PRINT)
    arguments = {"script": ["grade.py"], "module": ["-m", "grade"], "command": ["-c", PRINT]}[how]
    found = printed(*arguments, cwd=tmp_path, PYTHONPATH="")
    assert found and str(tmp_path) not in found and str(ROOT) not in found


def test_pythonpath_names_places_of_packages_but_for_where_somebody_works(tmp_path):
    site, work = tmp_path / "site", tmp_path / "project" / "kernels"
    site.mkdir()
    work.mkdir(parents=True)
    found = printed("-c", PRINT, cwd=work, PYTHONPATH=f"{site}:{work.parent}:")
    assert str(site) in found
    assert not {str(work), str(work.parent)} & {*found}


def test_what_a_pth_file_names_is_one(tmp_path, monkeypatch):
    packages, elsewhere = tmp_path / "site-packages", tmp_path / "elsewhere"
    packages.mkdir()
    elsewhere.mkdir()
    (packages / "one.pth").write_text(f"# a comment\nimport os\n{elsewhere}\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages), str(elsewhere), str(tmp_path)])
    assert {str(packages), str(elsewhere)} <= {*import_path()} and str(tmp_path) not in import_path()


@pytest.fixture
def project(tmp_path):
    """A folder with a script, a candidate and what the candidate may not read."""
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "results.jsonl").write_text("{}")
    (tmp_path / "candidate.py").write_text(CANDIDATE)
    (tmp_path / "grade.py").write_text(WORKER)
    return tmp_path


def test_a_candidate_of_a_script_reads_nothing_beside_it(project):
    """With `kernelbench.evaluate` in a script all below its folder was open: it was the first place of imports."""
    assert printed("grade.py", cwd=project)[:2] == ["Permission denied", "Permission denied"]


@pytest.mark.parametrize("variable", ["PATH", "LD_LIBRARY_PATH", "CUDA_HOME"])
def test_where_somebody_works_is_private_although_a_variable_of_compilers_names_it(project, variable):
    named = os.pathsep.join(filter(None, [str(project), os.environ.get(variable)]))
    assert printed("grade.py", cwd=project, **{variable: named})[:2] == ["Permission denied", "Permission denied"]


def test_home_temporary_files_and_the_cache_are_private_wherever_they_lie(tmp_path, monkeypatch):
    names = ("HOME", "TMPDIR", "KERNELBENCH_CACHE")
    for name in names:
        monkeypatch.setenv(name, str(tmp_path / name))
    assert {str(tmp_path / name) for name in names} <= {*private_places()}


def test_of_a_folder_of_the_system_what_lies_beside_the_working_directory_is_read(tmp_path, monkeypatch):
    system, work = tmp_path / "usr", tmp_path / "usr" / "src" / "app"
    for folder in (system / "lib", system / "src" / "linux", work / "bin"):
        folder.mkdir(parents=True)
    (system / "src" / "link").symlink_to(work)
    monkeypatch.setattr(landlock, "_READABLE", (str(system),))
    monkeypatch.setenv("PATH", f"{work / 'bin'}{os.pathsep}{work}")
    found = {path for path in landlock.named_paths([str(work)]) if path.startswith(str(tmp_path))}
    assert found == {str(system / "lib"), str(system / "src" / "linux"), str(work / "bin")}
    assert str(system) in landlock.named_paths([str(system)]), "compilers need it, whoever works there"


def test_what_lies_in_a_folder_that_may_only_be_passed_through_is_left_out(tmp_path, monkeypatch):
    """Every candidate had crashed then."""
    system, work = tmp_path / "opt", tmp_path / "opt" / "home" / "me"
    for folder in (work, system / "lib"):
        folder.mkdir(parents=True)
    list_it = os.scandir

    def scandir(path):
        if str(path) == str(work.parent):  # as its rights 0711 have it, which root does not feel
            raise PermissionError(13, "Permission denied", str(path))
        return list_it(path)

    monkeypatch.setattr(landlock.os, "scandir", scandir)
    assert landlock._around([str(system)], [str(work)]) == [str(system / "lib")]
