#!/usr/bin/env bash
# Checks the structure of the sources. Folders have one order, and include only those above them. Heavy headers, backends
# and the collectives of MPI stay in the folders that own them. No file grows beyond one concept, and tests are
# registered in one way. usage: structure.sh <repository>
set -euo pipefail
cd "$1"

failures=0

# complain <file:line or file> <what is wrong>
complain() {
  printf '%s: %s\n' "$1" "$2"
  failures=$((failures + 1))
}

# forbid <pattern> <where it is allowed, a path regex> <words>: no line of src/, reduce_all/ or training/ may match elsewhere.
forbid() {
  local hit
  while IFS= read -r hit; do
    [[ ${hit%%:*} =~ $2 ]] || complain "${hit%%:*}:$(cut -d: -f2 <<<"$hit")" "$3"
  done < <(grep -rnE --include='*.[ch]pp' --include='*.cu*' "$1" src reduce_all training 2>/dev/null || true)
}

# check_order <folder>...: a folder includes none of those after it. Includes are relative to src/ or to the repository.
check_order() {
  local folder below hit
  while (($# > 1)); do
    folder=$1
    shift
    below=$(IFS='|' && echo "${*#src/}")
    while IFS= read -r hit; do
      complain "${hit%%:#*}" "$folder must not include ${hit#*\"}"
    done < <(grep -rnoE "#include \"($below)/" "$folder" || true)
  done
}

# named_in_row <folder> <pattern>: folders inside it that its row in the table of CONTRIBUTING.md names.
named_in_row() {
  sed -nE "s,^\| \`$1/\` \|,,p" CONTRIBUTING.md | { grep -oE "$2" || true; } | sed -E "s,\`([a-z_]+).*,$1/\1,"
}

# CMakeLists.txt has the order of folders. The table of CONTRIBUTING.md has a row for each, in the same order, and a row names
# the folders inside in their order. Only `ops/NAME/` is in none: what a layer is comes before Network, its devices come last.
check_folders() {
  local folder folders names
  folders=$(sed -nE 's/^ *add_subdirectory\((src\/[a-z_]+|reduce_all|training)\)$/\1/p' CMakeLists.txt)
  names=${folders//src\//}
  [[ $(sed -nE 's/^\| `(src\/[a-z_]+|reduce_all|training)\/` \|.*/\1/p' CONTRIBUTING.md) == "$folders" ]] ||
    complain CONTRIBUTING.md "rows of folders are not in the order of CMakeLists.txt: ${folders//$'\n'/ }"
  [[ $(sed -nE 's/^ *add_subdirectory\(unit\/([a-z_]+)\)$/\1/p' tests/CMakeLists.txt | grep -xF "$names") == "$names" ]] ||
    complain tests/CMakeLists.txt "folders of unit/ are not in the order of CMakeLists.txt: ${names//$'\n'/ }"
  check_order $folders
  for folder in $folders; do check_order $(named_in_row "$folder" '`[a-z_]+/`'); done
  while read -r folder; do
    complain "$folder" 'not both a folder and named in the table of CONTRIBUTING.md'
  done < <(comm -3 <(for folder in $folders; do echo "$folder" && named_in_row "$folder" '`[a-z_]+/'; done | sort) \
    <(find src/* src/*/* reduce_all reduce_all/* training training/* -maxdepth 0 -type d | sort))
}

check_layers() {
  local file
  for file in src/nn/ops/*/; do
    file=$file$(basename "$file").hpp
    [[ -f $file ]] || complain "$file" 'a layer is described in the header that is called as its folder'
    ! grep -qE '#include "nn/(host|cuda|plan|ops)/' "$file" || complain "$file" 'the description of a layer knows no backend'
    grep -qF "#include \"${file#src/}\"" src/nn/ops/table.hpp || complain "$file" 'a layer without a row in nn/ops/table.hpp'
  done
}

check_lengths() {
  local lines file
  while read -r lines file; do
    [[ $file == total || $lines -le 400 ]] || complain "$file" "$lines lines, more than 400: is it still one concept?"
  done < <(find src reduce_all training tests share/cmake -name '*.[ch]pp' -o -name '*.cmake' 2>/dev/null | xargs -r wc -l)
  while IFS= read -r file; do
    complain "$file" 'a comment beyond column 120, where code is cut by clang-format'
  done < <(find src reduce_all training tests -name '*.[ch]pp' -exec awk 'length > 120 && $1 ~ /^\/\// { print FILENAME ":" FNR }' {} +)
  lines=$(wc -l <reduce_all/main.cpp)
  [[ $lines -lt 80 ]] || complain reduce_all/main.cpp "$lines lines, not under 80"
}

check_tests() {
  local hit
  while IFS= read -r hit; do
    complain "$hit" 'tests are registered by lockstep_add_test(), which gives each a folder and a time limit'
  done < <(grep -rlE '^ *add_test\(' --include=CMakeLists.txt --include='*.cmake' tests share/cmake | grep -vE '/LockstepTest\.cmake$|^tests/package/consumer/')
}

# Lists what belongs at the top, so that files which a test or a user leaves there do not slip into a commit.
check_top() {
  local name
  while IFS= read -r name; do
    [[ " .ci .clang-format .clang-tidy .editorconfig .gitignore CHANGELOG.md CITATION.cff CMakeLists.txt CMakePresets.json \
CONTRIBUTING.md INSTALL LICENSE README.md batch bootstrap modulefiles reduce_all share src tests training " == *" $name "* ]] ||
      complain "$name" 'no file or folder that belongs at the top of the repository'
  done < <(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u)
}

check_top
check_folders
check_layers
check_lengths
check_tests
forbid '#include *<mpi\.h>' '^src/(runtime|comm)/' '<mpi.h> belongs in src/runtime and src/comm'
forbid '#include *<hdf5' '^src/io/' '<hdf5.h> belongs in src/io'
forbid '#include *<Kokkos' '^src/nn/host/' 'Kokkos belongs in src/nn/host'
forbid '#include *<(cuda|cudnn|cublas|nccl|nvml)' '/cuda/|_cuda\.|/cuda_|/nccl/' "a vendor's header belongs in cuda/, *_cuda.cpp or nccl/"
forbid 'MPI_I?(Allreduce|Reduce_scatter|Allgather)|nccl(AllReduce|ReduceScatter|AllGather)' '^src/comm/' \
  'a collective on data belongs in src/comm'
forbid 'PMPI?_I?(Allreduce|Reduce_scatter|Allgather)|MPI_I?(Allreduce|Reduce_scatter|Allgather)v?\(' \
  '^src/comm/algorithms/mpi_native\.cpp' "MPI's own collectives are called by algorithm mpi only"
forbid '#include "(reduce_all|training|tests|support)/' '^(reduce_all|training)/' 'src/ must not include programs or tests'
forbid '#include "(metrics|report)/' '^(src/(metrics|report)|reduce_all|training)/' 'programs measure and report, not the library'
forbid '#include "nn/' '^(src/(nn|checkpoint)|training)/' 'only the trainer knows networks, and what keeps their weights'
forbid '#include "training/train/' '^training/(train|check|doctor/(job|needs))' 'training/train is the loop, known to its commands alone'
forbid '#include "training/check/' '^training/(check/|train\.)' 'training/check belongs to lockstep train'
forbid '#include "training/ckpt/' '^training/(ckpt|main|command)' 'training/ckpt is of its own command'
forbid '#include "training/doctor/' '^training/(doctor|main|command)' 'training/doctor is of its own command'
forbid '#include "training/lint/' '^training/(lint|main|command)' 'training/lint is of its own command'
forbid '#include "training/shard/' '^training/(shard|main|command)' 'training/shard is of its own command'
forbid '#include "nn/host/' '^src/nn/(host|ops)/' 'a backend is known to itself and to its layers alone'
forbid '#include "nn/cuda/' '^src/nn/(cuda|ops)/' 'a backend is known to itself and to its layers alone'
forbid '#include "nn/ops/' '^src/nn/(ops/|graph/network\.hpp|(host/host|cuda/cuda)_executor\.cpp)' \
  'layers are known by their table; executors alone take part in sums of batch normalization over ranks'
forbid 'dynamic_cast|#include "nn/host/|\bhost::' '^(src|reduce_all)/' 'training knows no backend and casts to none'
forbid '[Nn][Cc][Cc][Ll]|[Cc][Uu][Dd][Aa]|[Kk][Oo][Kk][Kk][Oo][Ss]|[Cc][Uu][Dd][Nn][Nn]|[Dd][Nn][Nn][Ll]|[Oo][Nn][Ee][Dd][Nn][Nn]' \
  '^(src|reduce_all|training/doctor/)' 'training names no backend; only its doctor tells of what a machine has'
forbid 'is_host_the_device|\bis_host\(\)|\bis_on_(device|gpus?|host)\b' '^(src|reduce_all|training/(doctor/|train/open_device\.cpp))' \
  'training asks for the traits of its device (runtime/device_traits.hpp), not for its kind'
forbid 'compat' '^(src|reduce_all|training/(run|CMakeLists|recipe/words))' "the tutorials' lines belong in training/run"
forbid '\b(recipe_?|r_)\.[a-z_0-9]+ *[!=]= *"' '^$' "a recipe's values are compared as values, not as words"
names=$(grep -oE '(\.name = |on_devices\(|nccl_row\()"[a-z_]+"' src/comm/registry.cpp | cut -d'"' -f2 | paste -sd'|')
forbid "\"($names)\"" '^src/comm/registry\.cpp' "an algorithm's name is written in src/comm/registry.cpp"

if ((failures > 0)); then
  echo "$failures violation(s) of the structure that CONTRIBUTING.md describes"
  exit 1
fi
echo "the structure holds"
