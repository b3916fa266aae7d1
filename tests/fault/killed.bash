#!/usr/bin/env bash
# killed.bash: the guard of a killed rank of `reduce_all` names that rank and no other, and the rank of a killed guard
# names the guard. The exit code is 3, and no process is left.
. "$(dirname "$0")/ranks.bash"

# The folder's name, here in a result file's, distinguishes this test's ranks from others.
start nproc 3 -b 1M -e 1M -n 1000000 --algorithm ring --json "$run_dir.json" --inject late:1:timing:1h
run_dir=$run_dir.json
await has_line 'injected: ' "$folder/err"
victim=$(process_of 1)
guard=$(parent_of "$victim")
witness=$(process_of 0)
guard_of_witness=$(parent_of "$witness")
above=$(parent_of "$guard")
kill -STOP "$above" # or it ends the witness
kill -KILL "$victim"
await has_ended "$guard"
kill -ABRT "$witness" # as MPI's own transport may, when it talks to a dead rank
await has_ended "$guard_of_witness"
kill -CONT "$above"
end
expect_one_error
expect_rc_of_job 3
expect_err "rank 1 on $(hostname -s) \(pid $victim\) has died: signal 9"
await none_with "$run_dir"

# A rank reports that its guard was killed.
run_dir=$folder/guard.json
: >"$folder/err"
start nproc 2 -b 1M -e 1M -n 1000000 --algorithm ring --json "$run_dir" --inject late:0:timing:1h
await has_line 'injected: ' "$folder/err"
rank=$(process_of 0)
guard=$(parent_of "$rank")
kill -KILL "$guard"
end
expect_one_error
expect_rc_of_job 3
expect_err "rank 0 on $(hostname -s) \(pid $rank\) ends, in phase timing: its guard \(pid $guard\) was killed"
await none_with "$run_dir"
