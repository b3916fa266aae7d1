#!/usr/bin/env bash
# reframe.bash BUILD: the ReFrame checks of an installation, by ReFrame itself; and they fail where the machine is slower than it should be.
# ReFrame comes from PyPI, once for a build folder; where it cannot be had: 77.
. "$(dirname "$0")/../cli/lib.bash"
build=$1 here=$(dirname "$(readlink -f "$0")")
python=$build/deps/reframe
type mpirun >/dev/null 2>&1 || { echo "ReFrame's launcher mpirun is not there" && exit 77; }
if [ ! -e "$python/complete" ]; then
  { rm -rf "$python" && python3 -m venv "$python" && "$python/bin/pip" --quiet install reframe-hpc && touch "$python/complete"; } >"$folder/out" 2>&1 ||
    { tail -n 3 "$folder/out" && echo "there is no ReFrame to be had" && exit 77; }
fi
run cmake --install "$build" --prefix "$folder/prefix"
expect_rc 0
export LOCKSTEP_ROOT=$folder/prefix HOME=$folder
reframe() {
  run "$python/bin/reframe" --prefix "$folder/reframe" -C "$here/reframe_settings.py" -c "$folder/prefix/share/lockstep/reframe" --nocolor --run \
    -S ReduceAll.largest=4K "$@"
}

reframe
expect_rc 0
expect_out 'Ran 3/3 test case.s. from 3 check.s. .0 failure'
reframe -n ReduceAll -S ReduceAll.least_busbw=100000
expect_rc 1
expect_out 'failed to meet reference.*busbw'
reframe -n Train -S Train.least_accuracy=101
expect_rc 1
