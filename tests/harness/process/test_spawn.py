"""Processes: what forks keep of their parent, and what programs import."""

import gc
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.compile.cache import cache_root
from harness.process.sandbox.landlock import _PATH_VARIABLES
from harness.process.spawn import ROOT, close_all_but, command_of, environment, scrubbed_environment


def in_a_fork(function):
    """Return what ``function`` returns in a fork of this process, a short text."""
    mine, its = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(its, function(its).encode())
        finally:
            os._exit(0)
    os.close(its)
    with open(mine) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text


def test_a_socket_of_the_parent_does_not_close_what_has_its_number_in_a_fork():
    """The collector found it later, and a worker lost the channel to its judge: a correct candidate had crashed."""
    cycle = [socket.socket()]
    cycle.append(cycle)
    number = cycle[0].fileno()

    def reused(pipe):
        nonlocal cycle
        close_all_but([pipe])
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, number)
        del cycle
        gc.collect()
        return "open" if os.path.exists(f"/proc/self/fd/{number}") else "closed"

    assert in_a_fork(reused) == "open"


def test_a_program_imports_nothing_from_the_working_directory(tmp_path):
    """It may be a checkout of others."""
    for name in ("torch", "click", "kernelbench"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('ran')")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [*command_of("kernelbench"), "--version"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("kb, version"), done.stderr


@pytest.mark.parametrize("mode", ["0", "1"])
def test_a_program_reads_names_of_files_as_who_starts_it(mode):
    """Beside `PYTHONUTF8=0` and the locale C, a path with an é was another one to the judge than to `kb`."""
    code = "import os, sys; from harness.process.spawn import command_of; "
    code += "command = command_of('json.tool'); os.execv(command[0], [*command[:-1], 'import sys; print(sys.flags)'])"
    env = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-X", f"utf8={mode}", "-c", code], env=env, capture_output=True, text=True)
    assert f"utf8_mode={mode}" in done.stdout, done.stderr


@pytest.mark.parametrize("name", _PATH_VARIABLES)
def test_what_the_confinement_opens_by_a_variable_is_passed_on(monkeypatch, name):
    """CUTLASS_PATH was not, and programs of uCUTLASS were not evaluated where nvidia-cutlass is not installed."""
    monkeypatch.setenv(name, "/usr/include")
    assert environment()[name] == "/usr/include"


FOR_BOTH = "CUDA_VISIBLE_DEVICES OMP_NUM_THREADS MKL_NUM_THREADS TRITON_INTERPRET".split()
FOR_NEITHER = """
CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING NVIDIA_TF32_OVERRIDE PYTORCH_NO_CUDA_MEMORY_CACHING PYTORCH_CUDA_ALLOC_CONF
CUBLAS_WORKSPACE_CONFIG CUDNN_LOGLEVEL_DBG OMP_PROC_BIND MKL_CBWR KMP_AFFINITY GOMP_CPU_AFFINITY OPENBLAS_NUM_THREADS
TORCH_LOGS
""".split()


@pytest.mark.parametrize("name", [*FOR_BOTH, *FOR_NEITHER])
def test_a_judge_has_no_rules_of_its_own(monkeypatch, tmp_path, name):
    """With CUDA_LAUNCH_BLOCKING=1 the reference alone waited for each kernel, and speedups were too large."""
    monkeypatch.setenv(name, "1")
    judge, worker = environment(), scrubbed_environment(str(tmp_path))
    assert judge.get(name) == worker.get(name) == ("1" if name in FOR_BOTH else None)


@pytest.mark.parametrize("name", ["KERNELBENCH_CACHE", "TMPDIR"])
def test_a_folder_named_by_a_part_of_its_path_is_one_for_all_processes(monkeypatch, tmp_path, name):
    """The judge works in `/`, and looked for what was built in another cache: correct candidates had crashed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert environment()[name] == str(tmp_path / "mine")
    expected = tmp_path / "mine" if name == "KERNELBENCH_CACHE" else Path.home() / ".cache" / "kernelbench"
    if name != "KERNELBENCH_CACHE":
        monkeypatch.delenv("KERNELBENCH_CACHE")
    assert cache_root() == expected


@pytest.mark.parametrize(
    ("value", "passes"),
    [
        ("redis://:ab/cd@host:6379", False),
        ("user:ab/cd@host:80", False),
        ("https://me@host/path", False),
        ("https://host/a", True),
        ("/opt/node@18/bin:/home/me@work/bin", True),
        ("de_DE.UTF-8@euro", True),
    ],
)
def test_addresses_with_a_password_are_not_passed_on(monkeypatch, value, passes):
    """A slash in the password, or no scheme, had them passed on."""
    monkeypatch.setenv("VIRTUAL_ENV", value)
    assert ("VIRTUAL_ENV" in environment()) is passes
