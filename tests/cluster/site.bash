# Provides what the templates find on their clusters, on top of cluster.bash: partitions, features, GPUs and modules
# with the names of all four sites, an installed Lockstep and a small set of digits.
. "$(dirname "$0")/cluster.bash"

# start_site BUILD SAMPLES: starts the cluster, and makes $prefix and $data with so many samples.
start_site() {
  local n file
  skip_unless_possible
  [ -r /usr/share/lmod/lmod/init/bash ] || { echo "there is no Lmod (Debian: lmod)" && exit 77; }
  mkdir -p "$site"/{modules,modules-deep,gpus}
  for n in {0..7}; do [ -e "$site/gpus/$n" ] || mknod "$site/gpus/$n" c 1 3; done
  mkdir -p "$cluster"
  printf 'Name=gpu Type=%s File=%s\n' a100 "$site/gpus/[0-3]" b200 "$site/gpus/[4-7]" >"$cluster/gres.conf"
  start_cluster GresTypes=gpu "NodeName=DEFAULT Features=a100,4gpus,intel Gres=gpu:a100:4,gpu:b200:4" \
    "PartitionName=DEFAULT Nodes=ALL MaxTime=INFINITE" PartitionName={cpu,gpuA100x4,batch,hpg-b200}
  prefix=$site/prefix data=$site/digits
  run cmake --install "$1" --prefix "$prefix"
  expect_rc 0
  run "$prefix/bin/lockstep" shard synth digits --samples "$2" --out "$data"
  expect_rc 0
  # Lmod 6 does not look for versions in a folder that has folders, so names of three parts have their own tree.
  for n in cray-hdf5-parallel cudatoolkit craype-accel-nvidia80 aws-ofi-nccl \
    openmpi openmpi/5.0.10 cuda/12.2 openmpi/4.1.4/gnu11.2.1-cuda12.2 nccl/2.17.1-cuda12.2 \
    ufrc gcc/14.2.0 cuda/12.9.1 nccl/2.27.5; do
    file=$site/modules/$n
    case $n in */*/*) file=$site/modules-deep/$n ;; */*) ;; *) file+=/1.0 ;; esac
    mkdir -p "${file%/*}"
    printf '#%%Module1.0\n' >"$file"
    case $n in openmpi/5*) echo 'setenv HPC_PMIX pmix' >>"$file" ;; esac
  done
}

# job_script NODES RANKS CORES TEMPLATE [SED EXPRESSION ...]: makes a template smaller, as a user edits it, and prints
# its path.
job_script() {
  local template=$prefix/share/lockstep/batch/$4 file=$folder/${4//\//-}
  "$prefix/share/lockstep/batch/lib/resize" "$1" "$2" "$3" "$template" |
    sed -E -e '/^#SBATCH --(account|qos)=/s/CHANGE_ME/physics/' -e "s|^data=CHANGE_ME|data='$data'|" "${@:5}" >"$file"
  echo "$file"
}

# submit_script FILE [FLAG ...]: submits it as a user who has loaded the module. The job inherits that, and unloads it
# if it begins with module purge. More ranks run than there are cores: a waiting rank gives its core to others.
submit_script() {
  # shellcheck disable=SC2016  # for the shell that is started
  on ctl env --chdir="$folder" MODULEPATH="$site/modules:$site/modules-deep:$prefix/share/lockstep/modulefiles" LMOD_SYSTEM_DEFAULT_MODULES=cray-hdf5-parallel USER=root OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_mpi_yield_when_idle=1 \
    bash -c '. /usr/share/lmod/lmod/init/bash && module load lockstep && [ -n "$_LMFILES_" ] && exec sbatch --parsable "$@"' bash "${@:2}" "$1"
}

# job_log JOB: prints the job's output.
job_log() { cat "$folder"/{runs,results}/*-"$1"/{,*/}job.log 2>/dev/null; }
job_has_logged() { job_log "$1" | grep -q -e "$2"; }
fail_job() {
  { cat "$folder"/*-"$1"*.out; job_log "$1"; } >"$folder/out" 2>&1
  tail -n 20 "$cluster"/*.log >"$folder/err"
  fail "job $1: ${*:2}"
}
# await_log JOB PATTERN: waits until the job has logged that. If it never does, shows the whole job.
await_log() { (await job_has_logged "$1" "$2") || fail_job "$1" "has not logged $2"; }
expect_job() {
  await_end "$1"
  [ "$state" = "$2" ] || fail_job "$1" "$state, exit code $rc; expected $2"
}

# begin_part NAME COMMAND...: runs it beside others, in its own folder. end_parts: prints the output of each; fails if
# one has failed.
parts=()
begin_part() {
  local name=${1//\//-}
  mkdir "$site/$name"
  (
    folder=$site/$name
    cd "$folder" && "${@:2}"
  ) >"$site/$name.log" 2>&1 &
  parts+=("$!.$name")
}
end_parts() {
  local part status=0
  for part in "${parts[@]}"; do
    printf '== %s\n' "${part#*.}"
    wait "${part%%.*}" || status=1
    cat "$site/${part#*.}.log"
  done
  return "$status"
}
