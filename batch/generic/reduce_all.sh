#!/bin/bash
# The all-reduce without a batch system: how fast, how healthy, and which node is not?
# RANKS=4 ./reduce_all.sh on this machine, or HOSTS=FILE RANKS=8 ./reduce_all.sh with lines as "node-a slots=4"; module load lockstep first.
# lockstep: site=generic

lib=${LOCKSTEP_ROOT:-}/share/lockstep/batch/lib
[ -r "$lib/generic-mpirun.sh" ] || { echo "error: no lockstep in LOCKSTEP_ROOT='${LOCKSTEP_ROOT:-}' (fix: module load lockstep)" >&2; exit 2; }
. "$lib/generic-mpirun.sh"
begin "results/reduce_all-$(date +%F-%H%M%S)"

# Is anything wrong with the nodes or the environment? Then the reason is in job.log, and all ends here.
launch lockstep doctor --expect-ranks "$n_ranks" --json "$folder/doctor.json" || end_job

# A measurement to compare later ones with: reduce_all --baseline FILE.
launch reduce_all --expect-ranks "$n_ranks" -b 8 -e 256M --max-time 15min --json "$folder/reduce_all.json"
end_job
