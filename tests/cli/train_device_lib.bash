# Of tests that train on GPUs that are made up: what a run of it printed.
. "$(dirname "$0")/lib.bash"

trained() {
  run "$REDUCE_ALL" train "$@"
  expect_rc 0
}
loss_of() { sed -n 's/^training  *loss \([^,]*\).*/\1/p' "$folder/out"; }
evaluated_of() { sed -n 's/^evaluation  *loss \([^,]*\).*/\1/p' "$folder/out"; }
digest_of() { sed -n 's/^digest *//p' "$folder/out"; }
near() { awk -v a="$1" -v b="$2" -v tolerance="$3" 'BEGIN { d = a - b; exit !(d <= tolerance * b && -d <= tolerance * b) }'; }
