#!/usr/bin/env bash
# The runs on GPUs behind results/, step by step, on a machine of your own:
#
#     scripts/evidence.sh DIR              # all of them, one GPU: about half an hour
#     scripts/evidence.sh DIR spread aa    # some
#
# A step writes its files into DIR and says how long it took; one that fails does not stop the others. GPUS=2 uses two
# GPUs for `hostile` and `scaling`; `kernelbench` needs KERNELBENCH=DIR, a checkout of it; `archive` needs ARCHIVE=FILE,
# as CUDA-L1's h100.jsonl, and continues in ARCHIVE_RUN=DIR for ARCHIVE_SECONDS at a time, from what is kept in
# ARCHIVE_FROM=DIR if it is given, which was made in an ARCHIVE_RUN of the same name. `tritonbench` needs TRITONBENCH=DIR, a checkout of TritonBench, and continues in
# TRITONBENCH_RUN=DIR for TRITONBENCH_SECONDS at a time. Python is $PYTHON or python3.
set -u

all="order tests profiles extensions spread accuracy accuracy_small aa_small losses sensitivity examples rounds redteam sanitize hostile scaling kernelbench archive held_out policy ucutlass_tune ucutlass ucutlass_solutions doors comparison service languages tritonbench kernelband recurrent"
if [ $# = 0 ]; then sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; echo "Steps: $all"; exit 2; fi
out=$(mkdir -p "$1" && cd "$1" && pwd) && shift || exit
cd "$(dirname "$0")/.." || exit
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
python() { command "${PYTHON:-python3}" "$@"; }
kb() { python -m kernelbench "$@"; }
gpus=${GPUS:-1}
counts=$(for ((n = gpus; n >= 1; n /= 2)); do echo $n; done | paste -sd,)
devices=$(seq -s, -f 'cuda:%g' 0 $((gpus - 1)))
level1="1,2,3,6,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,36,40,47,54,72,77,80,82,83,85,88,94,95,96,97,98"
level2="6,9,12,14,28,30,76"

ids() { echo "$2" | sed "s#[0-9][0-9]*#$1/&#g"; }

# Whether the GPU is in order: nothing that is measured on one that is not means anything.
order() { kb doctor --ceilings; }
tests() { python -m pytest -q -m gpu -p no:cacheprovider tests/harness/timing tests/harness/judge tests/harness/memory \
    tests/harness/tensors \
    tests/harness/process/sandbox/test_sandbox.py; }
# Profiles inside the sandbox, by CUPTI and by ncu where it is there.
profiles() { python -m pytest -q -rs -m gpu -p no:cacheprovider tests/harness/judge/test_profile.py; }
extensions() { python -m pytest -q -m gpu -p no:cacheprovider tests/harness/compile/test_extensions.py; }
spread() { python scripts/bench/timing_spread.py --relu 1.2,1.6,3,8,16,32 --runs 10 --json "$out/spread_short.json"; }
accuracy() {
  python scripts/bench/timing_accuracy.py --problems "$(ids 1 $level1),$(ids 2 $level2),3/1,3/3,3/43" \
    --json "$out/accuracy.json"
}
accuracy_small() {
  python scripts/bench/timing_accuracy.py --problems 1/19-53,1/88,1/94,1/95 --workload small \
    --json "$out/accuracy_small.json"
}
aa_small() {
  python scripts/bench/timing_aa.py --problems 1/19,1/36,1/95,1/23,2/76 --samples 10 --workload small \
    --json "$out/aa_small.json"
}
# Problems in which wrong answers pass, because PyTorch's own result is off by as much.
losses() {
  for precision in fp32 bf16; do
    python scripts/own_losses.py all --precision $precision --device cuda --least 0.005 >"$out/losses_$precision.txt"
  done
}
sensitivity() { python scripts/bench/timing_sensitivity.py --trials 30 --json "$out/sensitivity_30.json"; }
examples() { kb eval --allow-library --solutions examples --timeout 20 --out "$out/examples"; }
# How many rounds and how much time timing takes, beside what it took when results/ was made, and with half the target.
rounds() {
  [ -e "$out/examples/results.jsonl" ] || examples || return
  kb eval --allow-library --solutions examples --timeout 20 --cv 0.5% --out "$out/examples_cv_half" &&
    python scripts/bench/timing_rounds.py results/h100/examples "$out/examples" "$out/examples_cv_half" \
      --json "$out/rounds.json"
}
# Every program of the gallery against PyTorch, and FP16 GEMM with bias and GELU against cuBLAS; 16 compilers, 8 minutes.
# CUTLASS_PATH names a checkout of CUTLASS, where nvidia-cutlass is not installed.
ucutlass() {
  local status=0
  python scripts/bench/ucutlass.py --out "$out/ucutlass" --jobs "${JOBS:-16}" || status=$?
  rm -rf "$out/ucutlass/build"
  return $status
}
ucutlass_solutions() { kb eval --solutions solutions/ucutlass --out "$out/ucutlass_solutions"; }
# A linear layer with GELU, FP16, at two sizes: what tuning gains over the gallery's program, and over PyTorch.
ucutlass_tune() {
  local folder=$out/ucutlass_tune
  mkdir -p "$folder/problems/level1"
  cat >"$folder/problems/level1/001_linear_gelu.py" <<'PROBLEM'
"""Linear layer, GELU."""
import torch
import torch.nn as nn

WORKLOADS = {"full": dict(n=4096), "large": dict(n=8192), "small": dict(n=256)}


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x):
        return nn.functional.gelu(self.linear(x))


def get_inputs(n=4096):
    return [torch.rand(n, n)]


def get_init_inputs(n=4096):
    return [n]


def get_flops(n=4096):
    return 2 * n * n * n + 9 * n * n  # per output: bias, GELU (8)
PROBLEM
  for workload in full large; do
    kb ucutlass tune kernelbench/ucutlass/gallery/linear_gelu.dsl --problem 1/1 --problem-dir "$folder/problems" \
      --workload $workload --precision fp16 --builds 12 -o "$folder/$workload" || return
  done
}
redteam() { kb redteam --device cuda -o "$out/redteam.md"; }
# A correct kernel, and one that writes past its output: the second must be told with its line.
sanitize() {
  local relu=$out/1_19_past_its_end.cu
  sed 's/if (i < n4)/if (true)/; s/(n4 + 255) \/ 256/(n4 + 511) \/ 256/' examples/cuda/relu.cu >"$relu"
  kb time examples/cuda/relu.cu --problem 1/19 --sanitize --json >"$out/sanitize_ok.json" || return
  ! kb time "$relu" --problem 1/19 --sanitize --json >"$out/sanitize_wrong.json"
}
hostile() { python scripts/bench/hostile.py --count 500 --device "$devices" --json "$out/hostile.json"; }
scaling() {
  python scripts/bench/scaling.py --solutions examples/inline_cuda --variants 64 \
    --gpus "$counts" --json "$out/scaling.json"
}
kernelbench() {
  python scripts/bench/throughput.py --solutions examples/inline_cuda --variants 32 --only kernelbench-default \
    --rival-seconds 150 --kernelbench "${KERNELBENCH:?names no checkout of KernelBench}" --json "$out/kernelbench.json"
}

# An archive's claims against measurements: its pure PyTorch solutions first, which take no build, then the others. What
# there is no time for is not evaluated; another call of this step goes on where the last one ended.
archive() {
  local runs=${ARCHIVE_RUN:-$out/archive} begin=$SECONDS left
  [ -e "$runs/theirs/claims.jsonl" ] || kb import "${ARCHIVE:?names no archive}" -o "$runs/theirs" || return
  if [ -n "${ARCHIVE_FROM:-}" ] && [ ! -e "$runs/run" ]; then
    mkdir -p "$runs/run" && cp "$ARCHIVE_FROM"/config.json "$ARCHIVE_FROM"/results.jsonl "$runs/run" || return
  fi
  left=$((${ARCHIVE_SECONDS:-420} + begin - SECONDS))
  timeout -s TERM -k 30 "$left" "${PYTHON:-python3}" -m kernelbench eval --solutions "$runs/theirs/solutions" \
    --problem-dir "$runs/theirs/problems" --allow-library --timeout 30 --build-timeout 200 --resume -o "$runs/run" \
    >"$out/archive.log" 2>&1 || echo "evaluated in part: status $?"
  kb review "$runs/run" --rules >"$out/archive_review.txt" &&
    kb regrade "$runs/run" -o "$out/regrade.md" && kb regrade "$runs/run" -o "$out/regrade.html" &&
    kb regrade "$runs/run" -o "$out/regrade.json" || return
  tar -C "$runs/run" -czf "$out/archive_run.tar.gz" config.json results.jsonl \
    $(cd "$runs/run" && ls reviews.jsonl unevaluated.jsonl 2>/dev/null)
}

# The examples must keep their verdicts at sizes that they have not seen; a program for published sizes must not.
held_out() {
  kb eval --allow-library --solutions examples/inline_cuda --timeout 20 --held-out 7 --out "$out/held_out" &&
    kb eval kernelbench/redteam/exploits/31_fits_the_published_size.py --allow-library --held-out 7 \
      --out "$out/held_out_specialised"
}
# Examples of every language that is installed; `kb doctor` lists them. Each must be ok, with kernels of its own.
languages() {
  local failed=0 folder
  kb doctor --json >"$out/languages_doctor.json" || return
  for folder in cute_dsl cutile helion tilelang triton tvm_ffi; do
    kb eval --solutions "examples/$folder" --device cuda --timeout 300 --out "$out/languages_$folder" || failed=1
    grep -q '"status": *"ok"' "$out/languages_$folder/results.jsonl" 2>/dev/null || { echo "$folder: not ok"; failed=1; }
  done
  return $failed
}

# The template solver on 20 problems, round robin and under a budget policy, and what a replay of the first says: half an
# hour with 16 cores. Another call with the same DIR goes on where the last one ended.
policy() {
  local solve="kb solve --solver template --problems 1/19-32,1/36,1/40,1/47,1/94,1/98,1/100 --budget 12 --resume"
  mkdir -p "$out/policy" &&
    $solve --schedule breadth -o "$out/policy/full" &&
    $solve --schedule policy:eps=100%,window=4 -o "$out/policy/stopped" &&
    kb schedule replay "$out/policy/full" "$out/policy/stopped" --eps off,100% --window 0,4,8 \
      --plot "$out/policy/pareto.png" >"$out/policy/replay.txt"
}

# PyTorch's own recurrent layers as candidates, which work on streams of their own, and why those are not held.
recurrent() {
  python scripts/bench/gated_streams.py >"$out/gated_streams.txt" || return
  python scripts/reference_solutions.py "$out/recurrent/solutions" 3/36-42 || return
  for precision in fp32 fp16 bf16; do
    kb eval --solutions "$out/recurrent/solutions" --allow-library --workload small,full --precision $precision \
      --out "$out/recurrent/$precision"
  done
}

# What one call of `kb try` takes beyond build, check and timing, and built solutions an hour through the service.
doors() { python scripts/bench/try_overhead.py --solution examples/cuda/relu.cu --device cuda --calls 6 --json "$out/try_overhead.json"; }
comparison() { python scripts/bench/compare_outputs.py --json "$out/compare_outputs.json"; }
service() {
  python scripts/bench/service.py --solutions examples/inline_cuda --variants 8 --device cuda --json "$out/service.json"
}

# TritonBench-G: which files load, golden files against themselves, and one model's answers. What there is no time for is
# not evaluated; another call of this step goes on where the last one ended. Shapes: TRITONBENCH_WORKLOAD=all for every one.
tritonbench() {
  local root=${TRITONBENCH:?names no checkout of TritonBench} runs=${TRITONBENCH_RUN:-$out/tritonbench} what answers
  local end=$((SECONDS + ${TRITONBENCH_SECONDS:-540}))
  kb problems load --problem-dir "$root" >"$out/tritonbench_load.txt"
  TRITONBENCH=$root python -m pytest -q -m gpu -p no:cacheprovider tests/kernelbench/formats/test_tritonbench.py || return
  answers=$(ls "$root"/LLM_generated/Bench_G_general_purpose/*.jsonl | head -1)
  [ -d "$runs/golden" ] || kb import "$root" -o "$runs/golden" || return
  [ -d "$runs/answers" ] || kb import "$answers" --problem-dir "$root" -o "$runs/answers" || return
  for what in golden answers; do
    [ $((end - SECONDS)) -gt 30 ] || break
    timeout -s TERM -k 30 $((end - SECONDS)) "${PYTHON:-python3}" -m kernelbench eval --solutions "$runs/$what/solutions" \
      --problem-dir "$root" --workload "${TRITONBENCH_WORKLOAD:-0,test}" --timeout 60 --resume -o "$runs/${what}_run" \
      >"$out/tritonbench_$what.log" 2>&1 || echo "$what: evaluated in part, status $?"
    kb export "$runs/${what}_run" --to tritonbench -o "$out/tritonbench_$what.json" || return
    cp "$runs/${what}_run/results.jsonl" "$out/tritonbench_$what.jsonl"
  done
}
# KernelBand, Optuna and random choice over the template space: no model is asked.
kernelband() {
  kb experiment scripts/experiments/kernelband_templates.toml --resume -o "$out/kernelband_templates"
}

for step in "$@"; do
  case " $all " in *" $step "*) ;; *) echo "no step '$step'; there are: $all" >&2; exit 2 ;; esac
done
failed=0
for step in ${*:-$all}; do
  echo "== $step"
  begin=$SECONDS
  ($step) && status=0 || status=$?
  echo "== $step: status $status, $((SECONDS - begin)) s"
  [ $status = 0 ] || failed=1
done
exit $failed
