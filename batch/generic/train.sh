#!/bin/bash
# Training without a batch system, on one machine or several.
# After module load lockstep: RANKS=4 ./train.sh, or HOSTS=FILE RANKS=8 ./train.sh with lines such as "node-a slots=4".
# lockstep: site=generic

lib=${LOCKSTEP_ROOT:-}/share/lockstep/batch/lib
[ -r "$lib/generic-mpirun.sh" ] || { echo "error: no lockstep in LOCKSTEP_ROOT='${LOCKSTEP_ROOT:-}' (fix: module load lockstep)" >&2; exit 2; }
. "$lib/generic-mpirun.sh"
recipe=mnist_cnn # `lockstep train --help` lists others
strategy=ddp # what ranks divide; share/doc/strategies.md has others
data=CHANGE_ME # EDIT: a set of shards; `lockstep shard --help` explains how to make one
edited "$data" data
begin "${FOLDER:-runs/train}" # the same folder again: it resumes

# Checks nodes, data, environment, and room for the checkpoints of the recipe (3, the best one, and one being written).
# If something would fail, the script ends here, and job.log has the reason.
launch lockstep doctor --expect-ranks "$n_ranks" --recipe "$recipe" --data "$data" \
  --checkpoints "$folder" --n-checkpoints 5 --json "$folder/doctor.json" || end_job

# Copies the set to each node's own disk first. Run again with the same folder, it resumes from its last checkpoint.
launch lockstep train "$recipe" --expect-ranks "$n_ranks" --data "$data" --stage "$local_disk" \
  --strategy "$strategy" --run-dir "$folder" --resume auto --save-every '30 min'
end_job
