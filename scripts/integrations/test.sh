#!/usr/bin/env bash
# Test adapters and languages whose packages exclude each other, each in an environment of its own below .venvs/:
#
#     scripts/integrations/test.sh                  # all of them: several GB, and several minutes each
#     scripts/integrations/test.sh openenv shinka   # some
#
# Python is $PYTHON or python3, from 3.11 on.
set -u
cd "$(dirname "$0")/../.." || exit

adapters=tests/kernelbench/integrations
declare -A packages=(
  [verifiers]=".[verifiers] uv" [verifiers_environment]=".[verifiers-v0]" [openenv]=".[openenv]" [shinka]=".[shinka]"
  [languages]=". helion cuda-tile tilelang triton nvidia-cutlass-dsl"
)
declare -A tests=([languages]=tests/harness/solution/test_languages.py)

failed=0
for name in ${*:-verifiers verifiers_environment openenv shinka languages}; do
  [ "${packages[$name]:-}" ] || { echo "no '$name'; there are: ${!packages[*]}" >&2; exit 2; }
  [ -d ".venvs/$name" ] || "${PYTHON:-python3}" -m venv ".venvs/$name" || exit
  read -ra wanted <<<"${packages[$name]}"
  echo "== $name"
  ".venvs/$name/bin/pip" install --quiet --constraint constraints.txt --editable "${wanted[@]}" pytest pytest-timeout &&
    ".venvs/$name/bin/python" -m pytest -q "${tests[$name]:-$adapters/test_$name.py}" || failed=1
done
exit $failed
