#!/usr/bin/env bash
# reframe.bash BUILD: ReFrame runs its checks of an installation, which fail if the machine is slower than it should be.
# ReFrame comes from PyPI, once for a build folder. Exits with 77 if it is not available.
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
  run "$python/bin/reframe" --prefix "$folder/reframe" -C "$here/reframe_settings.py" -c "$folder/prefix/share/lockstep/reframe" --nocolor --run --exec-policy=serial \
    -S ReduceAll.largest=64 "$@"
}

reframe
expect_rc 0
expect_out 'Ran 3/3 test case.s. from 3 check.s. .0 failure'
reframe -n ReduceAll -S ReduceAll.least_busbw=100000
expect_rc 1
expect_out 'failed to meet reference.*busbw'

# Compared with earlier launches: as fast, within a tolerance for a busy machine, and slower than made-up fast ones.
run "$folder/prefix/bin/reduce_all" --nproc 2 -b 1K -e 4K --algorithm ring --json "$folder/before.json"
expect_rc 0
reframe -n AsFastAsBefore -S AsFastAsBefore.baselines="$folder/before.json" -S AsFastAsBefore.tolerance=900 -S cores_per_rank=1
expect_rc 0
expect_out 'Ran 1/1 test case.s. from 1 check.s. .0 failure'
python3 - "$folder/before.json" <<'EOF'
import json, sys
with open(sys.argv[1]) as file: result = json.load(file)
for visit in result['visits']:
    visit['core_round_trip_ns'] = [30 * 1.02**(i // 2) for i in range(400)] # cores are as far apart as they will be
    visit['time_us'] = [visit['time_us'][0] / 1000] * 400
with open(sys.argv[1], 'w') as file: json.dump(result, file)
EOF
reframe -n AsFastAsBefore -S AsFastAsBefore.baselines="$folder/before.json"
expect_rc 1
reframe -n Train -S Train.least_accuracy=101
expect_rc 1
