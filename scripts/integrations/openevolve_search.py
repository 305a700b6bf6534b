"""Let OpenEvolve evolve a kernel. The file is both the search and the evaluation file that OpenEvolve loads.

    pip install 'kernelbench[openevolve]'
    PROBLEM=1/19 python scripts/integrations/openevolve_search.py --model MODEL --base-url http://localhost:8000/v1
"""

import argparse
import os

from openevolve import run_evolution
from openevolve.config import Config, LLMModelConfig

from kernelbench.integrations.openevolve import evaluator
from kernelbench.integrations.tasks import seed_program

PROBLEM = os.environ.get("PROBLEM", "1/19")  # OpenEvolve's workers load this file with the caller's environment
evaluate = evaluator(PROBLEM)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--out")
    given = parser.parse_args()
    config = Config()
    key = os.environ.get("OPENAI_API_KEY", "none")
    config.llm.models = [LLMModelConfig(name=given.model, api_base=given.base_url, api_key=key, weight=1.0)]
    config.llm.update_model_params({"api_base": given.base_url, "api_key": key})
    config.diff_based_evolution = False
    config.evaluator.cascade_evaluation = False
    config.evaluator.timeout = 1200  # s: a build and an evaluation of CUDA
    result = run_evolution(seed_program(PROBLEM), __file__, config, given.iterations, given.out, cleanup=not given.out)
    print(result.metrics)
    print(result.best_code)


if __name__ == "__main__":
    main()
