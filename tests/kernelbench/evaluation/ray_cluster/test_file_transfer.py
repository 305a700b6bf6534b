"""A solution travels with the files that it names, without Ray or a cluster."""

import errno

from harness.solution.discover import discover
from harness.solution.visible_files import own_files
from kernelbench.evaluation.ray_cluster import file_transfer

WRONG = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x\n"


def test_a_parcel_holds_what_the_solution_names_and_no_more(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "kernel.cu").write_text('#include "common.cuh"')
    (tmp_path / "common.cuh").write_text("")
    (tmp_path / "1_23.py").write_text("")
    (tmp_path / "1_19.py").write_text("from torch.utils.cpp_extension import load\nload('a', ['parts/kernel.cu'])")
    solution = discover(tmp_path).solutions[0]
    (tmp_path / "linked.cuh").symlink_to("common.cuh")
    (tmp_path / "elsewhere.cuh").symlink_to("1_23.py")
    parcel = file_transfer.pack(solution)
    assert set(parcel.files) == {"1_19.py", "parts/kernel.cu", "common.cuh"}
    with parcel.unpacked() as unpacked:
        assert (unpacked.path.parent / "parts" / "kernel.cu").exists() and unpacked.sha256 == solution.sha256
        top = unpacked.root.resolve()
        own = [file.relative_to(top).as_posix() for file in own_files(unpacked)]
        assert own == ["1_19.py", "common.cuh", "parts/kernel.cu"] and unpacked.helpers == solution.helpers
    assert not unpacked.path.exists()


def test_a_parcel_leaves_out_what_cannot_be_read(tmp_path, monkeypatch):
    read = file_transfer.read_bytes

    def refuse(path, most):
        if path.name == "notes.txt":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path, most)

    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "1_19.py").write_text("open('notes.txt')\n" + WRONG)
    (solution,) = discover(tmp_path).solutions
    assert set(file_transfer.pack(solution).files) == {"1_19.py", "notes.txt"}
    monkeypatch.setattr(file_transfer, "read_bytes", refuse)
    assert set(file_transfer.pack(solution).files) == {"1_19.py"}
