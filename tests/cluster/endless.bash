# A training with the recipe of the templates that does not end before something has happened to it.
endless=(--deterministic --digest --threads 1 --epochs 100000 --gamma 1 --lr 0.1)

# train_without_end FOLDER CONDITION: prints a script for sed that makes a template train without end, and save often.
# If the CONDITION of the job's shell holds, it trains for some more steps and ends (most_steps, which is copied to
# FOLDER).
train_without_end() {
  cp "$(dirname "$0")/most_steps" "$1"
  printf '%s' "s|--resume auto --save-every '30 min'|--resume auto --save-every '640 samples' ${endless[*]} " \
    "\$(if [ $2 ]; then '$1/most_steps' \"\$folder\"; fi)|"
}
# digest_without_interruption RUN DATA: prints the digest after as many steps as the run in that folder has made in all.
digest_without_interruption() {
  run "$prefix/bin/lockstep" train mnist_cnn "${endless[@]}" --data "$2" --run-dir "$1-whole" --max-steps "$(cat "$1/most_steps")"
  expect_rc 0
  grep '^digest ' "$folder/out"
}
