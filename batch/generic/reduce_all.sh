#!/bin/bash
# The all-reduce without a batch system: its speed, its correctness, and which node is slow.
# After module load lockstep: RANKS=4 ./reduce_all.sh, or HOSTS=FILE RANKS=8 ./reduce_all.sh with lines such as "node-a slots=4".
# lockstep: site=generic

lib=${LOCKSTEP_ROOT:-}/share/lockstep/batch/lib
[ -r "$lib/generic-mpirun.sh" ] || { echo "error: no lockstep in LOCKSTEP_ROOT='${LOCKSTEP_ROOT:-}' (fix: module load lockstep)" >&2; exit 2; }
. "$lib/generic-mpirun.sh"
begin "results/reduce_all-$(date +%F-%H%M%S)"

# Checks nodes and environment. If something would fail, the script ends here, and job.log has the reason.
launch lockstep doctor --expect-ranks "$n_ranks" --json "$folder/doctor.json" || end_job

# Saves a baseline for later comparisons: reduce_all --baseline FILE.
launch reduce_all --expect-ranks "$n_ranks" -b 8 -e 256M --max-time 15min --json "$folder/reduce_all.json"
end_job
