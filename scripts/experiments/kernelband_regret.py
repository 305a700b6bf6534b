"""Print the regret of KernelBand on the landscape: its sum after t iterations, and the exponent of its growth.

    python scripts/experiments/kernelband_regret.py --seeds 50 --budget 60
"""

import argparse

from tabulate import tabulate

from kernelbench.solvers.landscape import regret
from kernelbench.solvers.landscape.simulation import Landscape, simulate
from kernelbench.solvers.script import Script, find

VARIANTS = {"kernelband": {}, "k=1": {"k": "1"}, "no profiling": {"profile": "off"}, "c=0.5": {"exploration": "0.5"},
            "llm selects": {"select": "llm"}}  # fmt: skip
SHOWN = (1, 5, 10, 20, 40, 80, 120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--budget", type=int, default=60, help="attempts a problem")
    parser.add_argument("--author", default="strong")
    given = parser.parse_args()
    rows = []
    solver = Script(find("kernelband"))
    for name, settings in VARIANTS.items():
        series, alone = [], []
        for seed in range(1, given.seeds + 1):
            landscape = Landscape(seed, ("1/1", "1/2", "1/3", "1/4", "1/5"), given.author)
            made = simulate(solver, landscape, budget=given.budget, settings=settings)
            series += regret.regrets(made).values()
            alone += regret.regrets(made, strategy_alone=True).values()
        longest = given.budget - 10  # a first kernel may take some attempts
        for what, found in (("kernel and strategy", series), ("strategy", alone)):
            sums = regret.cumulative(found, longest)
            at = [f"{sums[t - 1]:.3f}" if t <= len(sums) else "" for t in SHOWN]
            rows.append((name, what, *at, f"{regret.exponent(sums, 5):.2f}"))
    headers = ("variant", "regret of", *(f"R({t})" for t in SHOWN), "exponent from t = 5")
    print(tabulate(rows, headers, disable_numparse=True))


if __name__ == "__main__":
    main()
