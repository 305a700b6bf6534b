"""Write each problem's own Model as a solution, to evaluate the suite against itself.

    python scripts/reference_solutions.py references all
    kb eval --solutions references

Every result should be ok with a speedup of 1; what is not says something about
the problem or about the harness.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kernelbench import starter, suite


def main(folder: str, selector: str = "all") -> None:
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for file in suite.find(selector):
        path = target / f"{file.id.level}_{file.id.number}.py"
        path.write_text(starter.source(str(file.id), "py"))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
