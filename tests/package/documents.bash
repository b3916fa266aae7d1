#!/usr/bin/env bash
# documents.bash BUILD SOURCE: runs every command of README.md, INSTALL and share/doc as it stands there, in a folder
# that looks like a checkout with its build. Its programs are told to be quick. Commands that change the machine, or
# that another test runs, are listed below with the name of that test. A listed command that no page shows any more is a
# failure, too.
. "$(dirname "$0")/../cli/lib.bash"
build=$1 source=$2

# Beginnings of commands | who runs them: a test, or .ci/run (bare systems, other builds). "nobody": what they need
# cannot be had here.
elsewhere='
./bootstrap | .ci/run
apt-get install | .ci/run
share/cmake/build-kokkos | .ci/run
cmake --preset | .ci/run
cmake --build | .ci/run
ctest | .ci/run
export CMAKE_PREFIX_PATH= | .ci/run
cmake --install | package.install
module use | package.lmod
module load | package.lmod
module reset | nobody: modules of a real cluster
module purge | nobody: modules of a real cluster
module --force purge | nobody: modules of a real cluster
export CC=cc CXX=CC | nobody: the compilers of a Cray
$LOCKSTEP_ROOT/share/lockstep/tests/run | package.installed_tests
build/bin/lockstep shard import mnist | unit.program_shard
mpirun -n 2 reduce_all -b 8 -e 16M --baseline | cli.baseline
reduce_all --baseline | cli.baseline
lockstep train --replay | cli.train_bad_input
lockstep train digits --verify-resume | cli.train_verify_resume
lockstep train --self-test | mpi.train_device.np1
lockstep train digits --nproc 2 --inject | fault.flip
lockstep shard synth digits --out d --inject | cli.shard_interrupt
srun | cluster.slurm
salloc | nobody: an allocation of a real cluster
cmake -S fmt | nobody: sources of other projects
spack | nobody: there is no Spack
'

# commands FILE: prints the commands that it shows: indented lines that begin with a command's name, without
# explanations, with continued lines joined.
commands() {
  sed -nE -e ':join' -e '/\\$/{N;s/ *\\\n +/ /;b join' -e '}' \
    -e '/^    (batch\/check|\$LOCKSTEP_ROOT\/[a-z_\/]*|(\.\/|build\/bin\/|share\/cmake\/)?(bootstrap|for [a-z]+ in|reduce_all|lockstep|mpirun|srun|salloc|cmake|ctest|cpack|module|spack|apt-get|export|build-kokkos))( |$)/{s/^    //;s/ {2,}#.*//;p' -e '}' "$1"
}
runs_elsewhere() {
  local row
  while read -r row; do [[ $row && $1 == "${row% | *}"* ]] && echo "${row#* | }" && return; done <<<"$elsewhere"
  return 1
}

# The folder: quick programs, and the data that commands name.
cd "$folder" || exit 1
mkdir -p checkout/build/bin checkout/bin
cd checkout || exit 1
ln -s "$source/batch" "$source/share" .
cp "$source/batch/delta/train_cpu.sbatch" .
cat >build/bin/reduce_all <<EOF
#!/bin/sh
exec $build/bin/reduce_all "\$@" -n 4 --max-time 1s --visits 1
EOF
cat >build/bin/lockstep <<EOF
#!/bin/sh
[ "\$1" != train ] || set -- "\$@" --max-steps 3 --val-split ''
[ "\$1 \$2" != 'shard bench' ] || set -- "\$@" --seconds 0.2
exec $build/bin/lockstep "\$@"
EOF
chmod +x build/bin/*
export PATH=$PWD/build/bin:$PATH LOCKSTEP=$build/bin/lockstep
"$build/bin/lockstep" shard synth digits --samples 640 --out m >/dev/null || fail "no set"
"$build/bin/lockstep" train toy --max-steps 2 --run-dir t --save-weights t.h5 >/dev/null 2>&1 || fail "no weights"
"$build/bin/lockstep" ckpt export t.h5 --out theirs.npz >/dev/null || fail "no weights of others"

mapfile -t pages < <(cd "$source" && ls share/doc/*.md)
declare -i n_run=0 n_elsewhere=0
shown=
for page in README.md INSTALL "${pages[@]}"; do
  while read -r command; do
    [[ $'\n'$shown != *$'\n'$command$'\n'* ]] || continue # another page has it, too
    shown+=$command$'\n'
    if who=$(runs_elsewhere "$command"); then
      n_elsewhere+=1
      continue
    fi
    rm -rf d before.json weights.h5 w.safetensors
    case $command in *' d' | *' d '*) [[ $command == *synth* ]] || cp -r m d ;; esac
    run bash -c "$command" </dev/null
    [ "$rc" -eq 0 ] || fail "$page: $command"
    n_run+=1
  done < <(commands "$source/$page")
done

# In another folder: ctest would remove the log of the ctest that runs this test.
echo "subdirs(\"$build\")" >CTestTestfile.cmake
run ctest --show-only
expect_rc 0
sed -n 's/^ *Test *#[0-9]*: //p' "$folder/out" >tests
while read -r row; do
  [ -n "$row" ] || continue
  grep -qF -- "${row% | *}" <<<"$shown" || fail "no page shows a command '${row% | *}'"
  case ${row#* | } in
    .ci/run | nobody*) ;;
    *) grep -qxF "${row#* | }" tests || fail "there is no test '${row#* | }'" ;;
  esac
done <<<"$elsewhere"
echo "$n_run commands run, $n_elsewhere by other tests"
[ "$n_run" -ge 15 ] || fail "too few commands were found"
