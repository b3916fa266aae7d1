#!/usr/bin/env bash
# Plants one violation of each kind in a copy of the sources and expects structure.sh to name it. usage: structure_bites.sh <repository>
set -euo pipefail
lint=$(dirname "$(readlink -f "$0")")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$1"
cp -r src reduce_all training "$copy"
mkdir -p "$copy/share/cmake" "$copy/tests"
cp CMakeLists.txt CONTRIBUTING.md "$copy"
cp tests/CMakeLists.txt "$copy/tests"

# plant <file> <line> <words expected in the report>: plants all together; one report names them all.
planted=()
plant() {
  mkdir -p "$(dirname "$copy/$1")"
  printf '%s\n' "$2" >>"$copy/$1"
  planted+=("$1"$'\t'"$2"$'\t'"$3")
}

# expect_report: expects a report of each planted violation, with its file or folder.
expect_report() {
  local report file line words
  ! report=$("$lint/structure.sh" "$copy") || { echo "nothing was noticed"; exit 1; }
  for row in "${planted[@]}"; do
    IFS=$'\t' read -r file line words <<<"${row//$'\n'/ }"
    grep -F -e "$file" -e "${file%/*}: " <<<"$report" | grep -qF -- "$words" || { printf 'not noticed: %.80s in %s: %s\n%s\n' "$line" "$file" "$words" "$report"; exit 1; }
  done
}

"$lint/structure.sh" "$copy"
plant src/core/units.cpp '#include "runtime/session.hpp"' 'must not include runtime/'
plant src/metrics/phase_timers.cpp '#include "io/file.hpp"' 'must not include io/'
plant src/io/file.cpp '#include "report/results.hpp"' 'programs measure and report'
plant reduce_all/sweep.cpp '#include "io/file.hpp"' 'must not include io/'
plant CONTRIBUTING.md '| `src/core/` | once more |' 'not in the order of CMakeLists.txt'
plant tests/CMakeLists.txt 'add_subdirectory(unit/core)' 'not in the order of CMakeLists.txt'
plant src/extra/extra.cpp '// A folder.' 'not both a folder and named'
plant src/comm/extra/extra.cpp '// A folder.' 'not both a folder and named'
plant src/data/format/spec.cpp '#include "data/load/loader.hpp"' 'must not include data/load/'
plant training/recipe/keys.cpp '#include "training/run/run.hpp"' 'must not include training/run/'
plant training/train/setup.cpp '#include "training/check/replay.hpp"' 'must not include training/check/'
plant training/run/run.cpp '#include "training/check/verify_resume.hpp"' 'training/check belongs to'
plant training/run/run.cpp '#include "training/ckpt/verbs.hpp"' 'training/ckpt is of its own command'
plant training/run/run.cpp '#include "training/doctor/needs.hpp"' 'training/doctor is of its own command'
plant training/run/run.cpp '#include "training/lint/lint.hpp"' 'training/lint is of its own command'
plant training/run/run.cpp '#include "training/shard/verbs.hpp"' 'training/shard is of its own command'
plant training/run/run.cpp 'if (recipe.loss == "mse") return;' 'compared as values'
plant training/shard/verbs.cpp '#include "training/train/trainer.hpp"' 'known to its commands'
plant src/parallel/slots.cpp '#include "nn/graph/network.hpp"' 'only the trainer knows networks'
plant src/nn/plan/fusion.cpp '#include "nn/cuda/layout.hpp"' 'must not include nn/cuda/'
plant src/nn/cuda/layout.cpp '#include "nn/host/program.hpp"' 'a backend is known'
plant src/nn/cuda/layout.cpp '#include <Kokkos_Core.hpp>' 'Kokkos belongs'
plant src/nn/host/program.cpp '#include "nn/ops/conv/host_columns.hpp"' 'layers are known by their table'
plant src/nn/ops/conv/conv.hpp '#include "nn/host/layers.hpp"' 'knows no backend'
plant src/nn/ops/swish/swish.hpp '// Swish.' 'a layer without a row'
plant training/train/learner.cpp 'dynamic_cast<nn::Executor*>(device);' 'casts to none'
plant training/train/learner.cpp 'nn::host::HostExecutor* host;' 'knows no backend'
plant training/train/setup.cpp '// Summed by NCCL.' 'training names no backend'
plant training/recipe/keys.cpp 'constexpr int most_onednn_threads = 512;' 'training names no backend'
plant training/train/learner.cpp 'if (runtime::is_host_the_device()) return;' 'asks for the traits'
plant training/train/learner.cpp 'const bool compat = true;' "tutorials' lines"
plant src/core/units.cpp '#include <mpi.h>' '<mpi.h> belongs'
plant src/comm/schedule.cpp '#include "reduce_all/result.hpp"' 'must not include programs'
plant src/runtime/session.cpp '  MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, c);' 'a collective on data'
plant src/comm/transport.cpp '  MPI_Allgather(a, 1, MPI_INT, b, 1, MPI_INT, c);' 'algorithm mpi only'
plant reduce_all/sweep.cpp '  comm::find_algorithm("rabenseifner");' "an algorithm's name"
plant src/core/units.cpp '#include <hdf5.h>' '<hdf5.h> belongs'
plant src/nn/graph/models.cpp '#include <cuda_runtime.h>' "a vendor's header"
plant src/core/units.cpp "$(yes '// line' | head -400)" 'more than 400'
plant training/main.cpp "// $(printf 'word %.0s' {1..24})" 'beyond column 120'
plant tests/CMakeLists.txt 'add_test(NAME alone COMMAND true)' 'registered by lockstep_add_test'
expect_report
if git -C "$copy" init --quiet 2>/dev/null; then # only files that git keeps are checked
  planted=()
  plant before 'MANPATH=' 'belongs at the top'
  git -C "$copy" add before
  expect_report
fi
echo "every planted violation was noticed"
