"""Packages of the wheel; everything else is in setup.cfg, which cannot both find packages and map folders."""

from pathlib import Path

from setuptools import find_packages, setup

# In a checkout the suite and the solver scripts stand beside the package, installed they stand inside.
BESIDE = {"kernelbench.problems": "problems", "kernelbench.solvers.strategies": "scripts/solvers"}
BESIDE |= {f"kernelbench.problems.{level.name}": str(level) for level in sorted(Path("problems").glob("level*"))}

setup(packages=[*find_packages(include=["harness*", "kernelbench*"]), *BESIDE], package_dir=BESIDE)
