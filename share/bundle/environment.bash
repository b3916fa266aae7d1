# What the programs of a bundle need around them: its libraries, those of CUDA on this node, and Open MPI's folders.
# Sourced with $bundle, the bundle's folder.
# shellcheck shell=bash disable=SC2154,SC2034

# Prints folders that CUDA's libraries may lie in, the likelier first. $LOCKSTEP_CUDA_LIBRARIES: the user's, before all others.
cuda_folders() {
  local folder
  tr ':' '\n' <<<"${LOCKSTEP_CUDA_LIBRARIES:-}:${LD_LIBRARY_PATH:-}"
  for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "${CUDA_ROOT:-}" "${CUDNN_ROOT:-}" "${NCCL_ROOT:-}" /usr/local/cuda /usr/local/cuda-*; do
    [[ ! $folder ]] || printf '%s\n' "$folder"/{lib64,lib,targets/x86_64-linux/lib}
  done
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | sed -nE 's/.*=> (.*)\/lib(cudnn|nvrtc|nccl|cublas)[^/]*$/\1/p' | uniq
}

# Prints those of Python's wheels (nvidia-cudnn-cu13, ...).
wheel_folders() {
  local folder code='import importlib.util as u; s = u.find_spec("nvidia"); print(*(s.submodule_search_locations if s else ()), sep="\n")'
  python3 -c "$code" 2>/dev/null | while read -r folder; do printf '%s\n' "$folder"/*/lib; done
}

# Adds to cuda_libraries the first of the folders that has library $1; fails if none does. What it needs may lie in another wheel.
take_library() {
  local folder
  for folder in "${@:2}"; do
    [[ -e $folder/$1 ]] || continue
    [[ $folder != */nvidia/*/lib ]] || folder=$(printf '%s\n' "$folder" "${folder%/*/lib}"/*/lib | paste -s -d :)
    cuda_libraries+=${cuda_libraries:+:}$folder
    return
  done
  return 1
}

# Sets cuda_libraries, a search path for what the bundle needs of CUDA, or complaint.
find_cuda() {
  local name folder others='' missing=''
  local -a names known
  cuda_libraries=''
  [[ -s $bundle/share/bundle/needs ]] || return 0
  mapfile -t names <"$bundle/share/bundle/needs"
  mapfile -t known < <(cuda_folders)
  for name in "${names[@]}"; do
    take_library "$name" "${known[@]}" && continue
    [[ $missing ]] || mapfile -t -O "${#known[@]}" known < <(wheel_folders)
    take_library "$name" "${known[@]}" && continue
    missing+=" $name"
    for folder in "${known[@]}"; do others+=$(compgen -G "$folder/${name%.so.*}.so.[0-9]*" | sed 's/$/ /'); done
  done
  [[ $missing ]] || return 0
  complaint="this node lacks, of CUDA:$missing${others:+, and has only $others}
fix: load modules of CUDA and cuDNN of those versions, or install them as wheels of Python (nvidia-cudnn-cu13 and the like;
     of CUDA 12: -cu12), or name the folders that have them in LOCKSTEP_CUDA_LIBRARIES, with ':' between"
  return 1
}

# Prints this system's own libstdc++, if there is one.
system_cxx() {
  local library
  for library in /usr/lib64/libstdc++.so.6 /usr/lib/*/libstdc++.so.6 /lib/*/libstdc++.so.6; do
    [[ ! -e $library ]] || { readlink -f -- "$library"; return; }
  done
}

# Sets the environment, or complaint.
enter_bundle() {
  local glibc needs_glibc own cxx path=$bundle/lib
  needs_glibc=$(<"$bundle/share/bundle/glibc")
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/[^0-9]*//') || glibc=
  if [[ $glibc ]] && ! printf '%s\n' "$needs_glibc" "$glibc" | sort -C -V; then
    complaint="this system's glibc is $glibc, older than $needs_glibc, which the bundle was built with
fix: make the bundle on a system as old as this one"
    return 1
  fi
  find_cuda || return
  # The newer one serves both the bundle and CUDA's libraries.
  own=$(<"$bundle/share/bundle/libstdc++") cxx=$(system_cxx)
  [[ $cxx ]] && printf '%s\n' "$own" "${cxx#*libstdc++.so.}" | sort -C -V || path+=:$bundle/lib/cxx
  export LD_LIBRARY_PATH=$path${cuda_libraries:+:$cuda_libraries}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export OPAL_PREFIX=$bundle OPAL_BINDIR=$bundle/libexec OPAL_LIBDIR=$bundle/lib OPAL_PKGLIBDIR=$bundle/lib/openmpi
  export OPAL_DATADIR=$bundle/share OPAL_PKGDATADIR=$bundle/share/openmpi OPAL_SYSCONFDIR=$bundle/etc/openmpi
  export PMIX_PREFIX=$bundle PMIX_LIBDIR=$bundle/lib PMIX_PKGLIBDIR=$bundle/lib/pmix PMIX_DATADIR=$bundle/share
  export HWLOC_PLUGINS_PATH=$bundle/lib/hwloc # not those of another hwloc
  export OMPI_MCA_plm=isolated               # ranks of one node need no ssh
  export LOCKSTEP_MPIEXEC=$bundle/libexec/mpirun
}
