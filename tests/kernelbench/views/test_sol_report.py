"""`kb sol` and `kb doctor --ceilings` as a person uses them."""

import json
import re
import subprocess
import sys

import pytest
from warm_kb import KB

from harness.result import Result, Status
from kernelbench.views.leaderboard import result_table


def kb(*arguments, **keywords):
    return subprocess.run([*KB, *map(str, arguments)], capture_output=True, text=True, timeout=300, **keywords)


def test_the_worked_example():
    done = kb("sol", "1/1", "--device", "h100-sxm", "--clock", "mucutlass")
    assert done.stdout == kb("sol", "1/1", "--device", "h100-sxm", "--clock", 1500).stdout
    assert "1500 of 1980 MHz (given)" in done.stdout
    assert done.returncode == 0 and "**0.367 ms**" in done.stdout and "0.1834 ms" in done.stdout


def test_json_of_one_is_an_object_and_of_several_a_list(tmp_path):
    one = json.loads(kb("sol", "1/1", "--device", "a100-sxm", "--workload", "small", "--json").stdout)
    assert one["problem_id"] == "1/1" and one["device"] == "a100-sxm" and one["workload"] == "small"
    done = kb("sol", "1/1-3", "--json", "-o", tmp_path / "sol.json")
    assert done.stdout == ""
    assert [r["problem_id"] for r in json.loads((tmp_path / "sol.json").read_text())] == ["1/1", "1/2", "1/3"]


def test_several_are_a_table():
    lines = kb("sol", "1/19,1/1,2/80", "--device", "h100-sxm").stdout.splitlines()
    assert lines[0].startswith("NVIDIA H100 SXM 80 GB at 1980 MHz (rated)")
    assert [line.split()[0] for line in lines[4:]] == ["1/1", "1/19", "2/80"]
    assert "memory" in lines[5] and "3.8462" in lines[5]


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["1/999"], 2, "no problem matches"),
        (["nineteen"], 2, "not a problem selector"),
        (["1/1", "--device", "h100"], 2, "h100-sxm"),
        (["1/1", "--clock", "2500", "--device", "h100-sxm"], 2, "no SM clock of 2500 MHz; its highest is 1980 MHz"),
        (["1/1", "--clock", "-5"], 2, "-5"),
        (["1/1", "--clock", "fast"], 2, "or one of mucutlass, got fast"),
        (["1/1", "--workload", "huge"], 2, "no workload 'huge'"),
        (["1/1", "--device", "cuda:99"], 3, "99"),
        (["1/1", "--device", "cuda:x"], 2, "no limits are known for 'cuda:x'"),
        (["1/1", "-o", "/proc/nowhere"], 2, "/proc/nowhere"),
    ],
)
def test_wrong_input_is_one_clear_error(arguments, status, message):
    import torch

    if "cuda:99" in arguments and not torch.cuda.is_available():
        message = "no GPU to run on"
    done = kb("sol", *arguments)
    assert done.returncode == status and message in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


@pytest.mark.slow
def test_the_roofline_is_a_picture(tmp_path):
    pytest.importorskip("matplotlib", reason="the picture needs the report extra")
    for name, begin in (("r.png", b"\x89PNG"), ("r.svg", b"<?xml")):
        assert kb("sol", "1/1,1/19", "--roofline", tmp_path / name).returncode == 0
        assert (tmp_path / name).read_bytes().startswith(begin)
    assert "1/19" in (tmp_path / "r.svg").read_text()
    done = kb("sol", "1/1", "--roofline", tmp_path / "r.unknown")
    assert done.returncode == 3 and "cannot write" in done.stderr


@pytest.mark.slow
def test_without_matplotlib_the_error_says_what_to_install(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from kernelbench.cli import main; main()"
    command = [sys.executable, "-c", code, "sol", "1/1", "--roofline", str(tmp_path / "r.png")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3 and "pip install 'kernelbench[report]'" in done.stderr


def test_ceilings_are_measured_on_a_cpu_too():
    done = kb("doctor", "--ceilings", "--device", "cpu")
    assert done.returncode == 0 and "a CPU: no GPU is measured" in done.stdout
    copy, matmul = (float(re.search(rf"^{what} .*?([\d.,]+) [GT]", done.stdout, re.M)[1].replace(",", ""))
                    for what in ("copy", "FP32 matmul"))  # fmt: skip
    assert copy > 0 and matmul > 0 and done.stdout.count("not known") == 2


@pytest.mark.gpu
def test_ceilings_of_a_gpu_stand_beside_the_datasheet():
    done = kb("doctor", "--ceilings")
    assert done.returncode == 0 and "FP16 matmul" in done.stdout and "copy" in done.stdout


def test_ceilings_of_no_device_are_wrong_usage():
    assert kb("doctor", "--ceilings", "--device", "tpu").returncode == 2
    assert kb("doctor", "--device", "cpu").returncode == 2


def test_the_leaderboard_shows_percent_of_sol_where_there_is_a_bound():
    def result(problem, sol):
        return Result(problem=problem, problem_name="x", workload={}, status=Status.OK, speedup=1.0, sol=sol,
                      solution={"name": "s", "sample": 0, "language": "cuda"})  # fmt: skip

    bounded = result("1/1", {"percent_of_sol": 42.04, "t_sol_ms": 1.0, "bottleneck": "memory"})
    table = result_table([bounded, result("1/2", {"unavailable": "no limits are known for a toaster"})])
    assert "of SOL" in table and table.count("42.0 %") == 1 and table.replace("95 % interval", "").count("%") == 1
