"""Let GEPA improve a kernel: each reflection sees the judge's feedback.

    pip install 'kernelbench[gepa,llm]'
    python scripts/integrations/gepa_search.py 1/19 --model MODEL --base-url http://localhost:8000/v1
"""

import argparse

from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything
from openai import OpenAI

from kernelbench.integrations.gepa import KernelEvaluator
from kernelbench.integrations.tasks import seed_program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem")
    parser.add_argument("--model", required=True)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--budget", type=int, default=20, help="evaluations")
    given = parser.parse_args()
    client = OpenAI(base_url=given.base_url)

    def ask(prompt) -> str:
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return client.chat.completions.create(model=given.model, messages=messages).choices[0].message.content

    result = optimize_anything(
        seed_candidate=seed_program(given.problem),
        evaluator=KernelEvaluator(given.problem),
        objective="Write ModelNew so that it stays correct and runs as fast as possible.",
        config=GEPAConfig(
            engine=EngineConfig(max_metric_calls=given.budget, parallel=False),
            reflection=ReflectionConfig(reflection_lm=ask),
        ),
    )
    print(result.val_aggregate_scores)
    print(result.best_candidate)


if __name__ == "__main__":
    main()
