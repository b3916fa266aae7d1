#!/bin/bash
# Training on the GPUs of one machine or several, without a batch system: RANKS is the number of GPUs of all of them.
# RANKS=4 ./train_gpu.sh on this machine, or HOSTS=FILE RANKS=8 ./train_gpu.sh with lines as "node-a slots=4"; module load lockstep first.
# lockstep: site=generic

lib=${LOCKSTEP_ROOT:-}/share/lockstep/batch/lib
[ -r "$lib/generic-mpirun.sh" ] || { echo "error: no lockstep in LOCKSTEP_ROOT='${LOCKSTEP_ROOT:-}' (fix: module load lockstep)" >&2; exit 2; }
. "$lib/generic-mpirun.sh"
recipe=tinyimagenet_resnet50 # `lockstep train --help` names others
data=CHANGE_ME # EDIT: a set of shards; `lockstep shard --help` says how to make one
edited "$data" data
begin "${FOLDER:-runs/train_gpu}" # the same folder again: it goes on

# Is anything wrong with the nodes, the data or the environment, or too little room for the checkpoints of the recipe (3, the best one,
# and one being written)? Then the reason is in job.log, and all ends here.
launch lockstep doctor --expect-ranks "$n_ranks" --device cuda --recipe "$recipe" --data "$data" \
  --checkpoints "$folder" --n-checkpoints 5 --json "$folder/doctor.json" || end_job

# The set is copied to each node's own disk first. The second time this runs with the same folder it goes on from its last checkpoint.
launch lockstep train "$recipe" --expect-ranks "$n_ranks" --device cuda --data "$data" --stage "$local_disk" \
  --run-dir "$folder" --resume auto --save-every '30 min'
end_job
