# What ./bootstrap needs, how it finds that, and how it installs what is missing.
# shellcheck shell=bash

# What is needed: name | purpose: run, check (without "?" also for a bundle), builds (to check other builds), or data (to run
# lockstep); "?" if optional | test | Debian packages | usual module. (`command -v` is true if one of its arguments exists,
# `type` if all of them do.)
needs=(
  'CMake 3.25 or newer   | run    | has_cmake                          | cmake                   | cmake'
  'Ninja or make         | run    | command -v ninja make              | ninja-build             | ninja'
  'C++20 compiler        | run    | has_compiler                       | g++                     | gcc'
  'MPI to compile with   | run    | has_mpi                            | libopenmpi-dev          | openmpi or mpich'
  'MPI launcher          | run    | command -v mpirun mpiexec srun     | openmpi-bin             | openmpi or mpich'
  'CLI11                 | run    | has_cmake_package CLI11            | libcli11-dev            | cli11'
  'fmt                   | run    | has_cmake_package fmt              | libfmt-dev              | fmt'
  'spdlog                | run    | has_cmake_package spdlog           | libspdlog-dev           | spdlog'
  'nlohmann-json         | run    | has_cmake_package nlohmann_json    | nlohmann-json3-dev      | nlohmann-json'
  'hwloc 2               | run?   | pkg-config --atleast-version=2 hwloc | pkg-config libhwloc-dev | hwloc'
  'HDF5 1.10.5 or newer  | data   | has_hdf5                           | libhdf5-dev             | hdf5'
  'pkg-config            | data   | command -v pkg-config              | pkg-config              | pkg-config'
  'Zstandard             | data   | pkg-config --exists libzstd        | libzstd-dev             | zstd'
  'LZ4                   | data   | pkg-config --exists liblz4         | liblz4-dev              | lz4'
  'zlib                  | data   | pkg-config --exists zlib           | zlib1g-dev              | zlib'
  'libzip                | data   | pkg-config --exists libzip         | libzip-dev              | libzip'
  'xxHash                | data   | pkg-config --exists libxxhash      | libxxhash-dev           | xxhash'
  'libjpeg-turbo         | data   | pkg-config --exists libturbojpeg   | libturbojpeg0-dev       | libjpeg-turbo'
  'libpng                | data   | pkg-config --exists libpng         | libpng-dev              | libpng'
  'utf8proc              | data   | pkg-config --exists libutf8proc    | libutf8proc-dev         | utf8proc'
  'toml++                | data   | pkg-config --exists tomlplusplus   | libtomlplusplus-dev     | tomlplusplus'
  'oneDNN 2.6 to 3       | data   | has_onednn                         | libdnnl-dev ocl-icd-opencl-dev | onednn'
  'Kokkos with OpenMP    | data   | can_have_kokkos                    |                         | kokkos'
  'GoogleTest            | check  | has_cmake_package GTest            | libgtest-dev            | googletest'
  'Python jsonschema     | check? | has_python_module jsonschema       | python3-jsonschema      | python'
  'Python h5py           | check? | has_python_module h5py             | python3-h5py            | python'
  'HDF5 tools            | check? | type h5dump h5ls                   | hdf5-tools              | hdf5'
  'Slurm, munge, ip      | check? | type slurmctld slurmd munged ip    | slurm-wlm munge iproute2 | none: for the tests'
  'Lmod                  | check? | test -r /usr/share/lmod/lmod/init/bash | lmod | none: see INSTALL'
  'shellcheck            | check? | type shellcheck                    | shellcheck              | none: shellcheck'
  'man                   | check? | type man                           | man-db                  | none: man-db'
  'ccache                | check? | type ccache                        | ccache                  | none: see INSTALL'
  'mold                  | check? | type mold                          | mold                    | none: see INSTALL'
  'mount                 | check? | type mount                         | mount                   | none: util-linux'
  'MPICH beside Open MPI | builds? | type mpicxx.mpich mpiexec.mpich   | mpich libmpich-dev      | none: see INSTALL'
  'Clang with libFuzzer  | builds? | has_libfuzzer                     | clang libclang-rt-dev libomp-dev | clang'
)

# CMake is there and new enough.
has_cmake() {
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*//p') && printf '3.25\n%s\n' "$version" | sort -C -V
}

# Source text $1 passes the compiler in the other arguments.
compiles() { "${@:2}" -std=c++20 -x c++ -fsyntax-only - <<<"$1"; }

# A program links with the arguments.
links() { "${compiler[@]}" -x c++ - "$@" -o /dev/null <<<'int main() {}'; }

# The compiler knows C++20.
has_compiler() { compiles 'static_assert(__cplusplus >= 202002L);' "${compiler[@]}"; }

# mpi.h can be included, by a wrapper or (as on Cray systems) by the compiler itself.
has_mpi() {
  local source=$'#define OMPI_SKIP_MPICXX\n#define MPICH_SKIP_MPICXX\n#include <mpi.h>'
  compiles "$source" mpicxx || compiles "$source" mpic++ || compiles "$source" "${compiler[@]}"
}

# Prints the configuration files of package $1 where CMake's find_package looks for them.
cmake_package_files() {
  local root_variable=$1_ROOT prefix folder
  local -a prefixes
  IFS=: read -ra prefixes <<<"${!root_variable:-}:${CMAKE_PREFIX_PATH:-}:$PATH:/usr/local:/usr"
  for prefix in "${prefixes[@]%/bin}"; do
    for folder in 'lib*' 'lib/*' 'share'; do
      compgen -G "$prefix/$folder/cmake/$1*/*onfig*.cmake"
    done
    compgen -G "$prefix/cmake/$1*onfig*.cmake"
  done
}

# Package $1 is there for CMake, or an earlier configure found it.
has_cmake_package() { [[ $(cmake_package_files "$1") || -d $(cache_value "$build" "$1_DIR") ]]; }

# oneDNN is there, and OpenCL if its configuration file asks for that.
has_onednn() {
  local wants_opencl
  wants_opencl=$(cmake_package_files dnnl | xargs -r -d '\n' grep -l '^set(DNNL_GPU_RUNTIME "OCL")')
  has_cmake_package dnnl || return
  [[ ! $wants_opencl ]] || { compiles '#include <CL/cl.h>' "${compiler[@]}" && links -lOpenCL; }
}

# HDF5 is there: CMake asks its compiler wrapper, if there is no configuration file.
has_hdf5() { command -v h5cc h5pcc "${HDF5_ROOT:-}/bin/h5cc" "${HDF5_ROOT:-}/bin/h5pcc" || has_cmake_package hdf5; }

# A Kokkos with OpenMP is installed.
has_kokkos() { [[ $(cmake_package_files Kokkos | xargs -r -d '\n' grep -l 'Kokkos_DEVICES.*OPENMP') ]]; }

# Kokkos is there or can be built here.
can_have_kokkos() { [[ -f $kokkos/built_by.txt ]] || has_kokkos || type apt-get; }

# A Clang that links libFuzzer is there.
has_libfuzzer() {
  clang++ -fsanitize=fuzzer -x c++ -o /dev/null - <<<'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }'
}

# A Python that can import $1 is there.
has_python_module() {
  local python code="import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"
  for python in python3 /usr/bin/python3; do "$python" -c "$code" && return; done
  return 1
}

# Finds what purpose $1 (run, bundle, check or builds; each includes those before it) lacks. Sets missing (lines for a reader), packages
# (not installed), required and its modules, and training (OFF if lockstep cannot be built).
find_missing() {
  missing=() packages=() required=() modules=() training=ON
  local row name purpose test package module
  local -a words
  for row in "${needs[@]}"; do
    IFS='|' read -r name purpose test package module <<<"$row"
    read -r purpose <<<"$purpose"
    case $1.$purpose in run.check* | bundle.check\? | check.builds* | run.builds* | bundle.builds*) continue ;; esac
    read -ra words <<<"$test"
    "${words[@]}" >/dev/null 2>&1 && continue
    read -r package <<<"$package"
    missing+=("$(printf '  %s Debian: %-24s module:%s' "$name" "$package" "$module")")
    for package in $package; do
      [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || packages+=("$package")
    done
    case $purpose in
      *\?) ;;
      data) training=OFF ;;
      *) required+=("${name%%  *}") modules+=("${module# }") ;;
    esac
  done
}

# Prints why this user cannot install the missing packages, if so.
install_obstacle() {
  if ! type apt-get >/dev/null 2>&1; then
    echo "cannot install packages, because there is no apt-get"
  elif ((EUID != 0)) && ! { sudo -n true || { [[ -t 0 ]] && sudo -v; }; } 2>/dev/null; then
    echo "you are not root, and sudo does not work; run as root: apt-get install --no-install-recommends ${packages[*]}"
  fi
}

# Installs what purpose $1 (run, bundle, check or builds) needs, or prints what is missing and exits 2.
ensure_needs() {
  local -a apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120)
  local obstacle=''
  find_missing "$1"
  ((${#missing[@]})) || return 0
  printf '%s\n' "missing on this machine:" "${missing[@]}"
  ((${#packages[@]} == 0)) || obstacle=$(install_obstacle)
  if ((${#packages[@]})) && [[ ! $obstacle ]]; then
    ((EUID == 0)) || apt=(sudo -n "${apt[@]}")
    stage "reading package lists" "${apt[@]}" update || say "continuing with the existing package lists"
    stage "installing ${packages[*]}" "${apt[@]}" install -y --no-install-recommends "${packages[@]}" || true
    find_missing "$1"
  fi
  ((${#required[@]} == 0)) || give_up "missing or too old: $(join "${required[@]}")" \
    "${obstacle:-the packages of Debian 12 and 13 are new enough}" \
    "on a cluster load modules for: $(join "${modules[@]}"); see INSTALL"
  ((${#missing[@]} == 0)) || say "continuing without these, because they are not required"
  [[ $training == ON ]] || without_training "some of the libraries above are missing${obstacle:+: }$obstacle"
}
