"""Evaluate one program in a throwaway box, and say whether it got anything that it did not earn.

    python scripts/attack.py program.py
    python scripts/attack.py program.cu --device cuda --timeout 30 --json

The box has namespaces of its own and a file system in which everything written goes to memory; its time and memory are
limited. Told are a speedup beyond that of its honest twin, which a program names in its first lines (`twin=FILE`, from
its own folder on) and which is the reference without that, files and processes that it left, caches and records that it
changed, secrets around it that it told, and an evaluation that did not end as it should. Exit status: 0 it got nothing,
1 it got something, 2 it is no solution, 3 this machine makes no such box.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.solution.discover import SolutionError
from kernelbench import escaping
from kernelbench.redteam.attack import Limits, attack
from kernelbench.redteam.box import NoBox


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:INDEX")
    parser.add_argument("--timeout", type=float, default=10, help="seconds that a step of the program may take")
    parser.add_argument("--memory", type=float, default=4, help="GB of host memory that the program may take")
    parser.add_argument("--limit", type=float, default=600, help="seconds for everything")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    limits = Limits(options.device, options.timeout, memory_bytes=int(options.memory * 1e9), whole_s=options.limit)
    try:
        report = attack(options.program, limits)
    except (NoBox, SolutionError, OSError) as error:
        print(f"{options.program}: {error}", file=sys.stderr)
        sys.exit(3 if isinstance(error, NoBox) else 2)
    if options.json:
        print(escaping.json_text(report.to_json()))
    else:
        print(escaping.terminal(f"{report.status} {report.speedup} {report.message}".strip()))
        print("\n".join(escaping.terminal(f"got: {gain}") for gain in report.gains) or "got nothing")
    sys.exit(1 if report.gains else 0)


if __name__ == "__main__":
    main()
