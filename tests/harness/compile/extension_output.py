"""Save what a solution's model gives: ``extension_output.py ours|stock SOLUTION FILE``.

Its extension is built by ours or by PyTorch's own build, for the GPU if there is one.
"""

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import torch

from harness import device as devices
from harness.compile import BuildContext
from harness.compile.extension.build import ExtensionBuilder
from harness.process.fork_server import ForkServer
from harness.solution.discover import read_solution
from harness.worker import extensions

SHAPE = (16, 256, 32)

side, path, target = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
solution = read_solution(path)
arch = devices.architecture(devices.select(None))
with ForkServer() as server, tempfile.TemporaryDirectory() as scratch:
    os.environ["TORCH_EXTENSIONS_DIR"] = os.environ["KERNELBENCH_CACHE"] = scratch
    tempfile.tempdir = scratch  # a builder reads what lies in the candidate's own folder
    if arch:
        os.environ["TORCH_CUDA_ARCH_LIST"] = arch
    if side == "ours":
        builder = ExtensionBuilder(solution, BuildContext(server, arch, torch.__version__, 600, 16 << 30, jobs=4))
        extensions.install(lambda request: builder(request, Path(scratch)))
    spec = importlib.util.spec_from_file_location("solution", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.ModelNew(*([1] if solution.problem.number == 47 else []))  # the sum's dimension
    torch.manual_seed(0)
    inputs = torch.randn(SHAPE, device="cuda" if arch else "cpu")
    torch.save(model(inputs).cpu(), target)
