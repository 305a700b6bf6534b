"""Packages of the wheel; everything else is in setup.cfg, which cannot both find packages and map folders."""

import sys
from pathlib import Path

from setuptools import find_packages, setup

# In a checkout the suite and the solver scripts stand beside the package, installed they stand inside.
BESIDE = {"kernelbench.problems": "problems", "kernelbench.solvers.strategies": "scripts/solvers"}
BESIDE |= {f"kernelbench.problems.{level.name}": str(level) for level in sorted(Path("problems").glob("level*"))}
# An editable installation needs none of them. For folders without an __init__.py setuptools gives it an entry of
# sys.path that is no place, and Python imports from a folder of that name in the working directory when it starts.
if "editable_wheel" in sys.argv:
    BESIDE = {}

setup(packages=[*find_packages(include=["harness*", "kernelbench*"]), *BESIDE], package_dir=BESIDE)
