"""Let ShinkaEvolve evolve a kernel.

    pip install 'kernelbench[shinka]'
    PROBLEM=1/19 python scripts/integrations/shinka_search.py --out runs/shinka \\
        --model local/MODEL@http://localhost:8000/v1
"""

import argparse
import os
import sys
from pathlib import Path

from shinka.core import EvolutionConfig, ShinkaEvolveRunner
from shinka.database import DatabaseConfig
from shinka.launch import LocalJobConfig

from kernelbench.integrations.tasks import instruction, seed_program

PROBLEM = os.environ.get("PROBLEM", "1/19")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="as ShinkaEvolve names it")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--generations", type=int, default=20)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    seed = given.out / "initial.py"
    seed.write_text(f"# EVOLVE-BLOCK-START\n{seed_program(PROBLEM)}# EVOLVE-BLOCK-END\n")
    ShinkaEvolveRunner(
        evo_config=EvolutionConfig(
            task_sys_msg=instruction(PROBLEM),
            num_generations=given.generations,
            patch_types=["full"],
            patch_type_probs=[1.0],
            llm_models=[given.model],
            llm_dynamic_selection=None,
            embedding_model=None,
            meta_rec_interval=None,
            use_text_feedback=True,
            init_program_path=str(seed),
            results_dir=str(given.out / "evolution"),
        ),
        job_config=LocalJobConfig(
            eval_program_path=str(Path(__file__).with_name("shinka_evaluate.py")), python_executable=sys.executable
        ),
        db_config=DatabaseConfig(db_path="evolution.sqlite", num_islands=1, archive_size=10),
        max_evaluation_jobs=1,
        max_proposal_jobs=1,
    ).run()


if __name__ == "__main__":
    main()
