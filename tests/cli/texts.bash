#!/usr/bin/env bash
# --help, --version and --list: without MPI, and once, not once per rank, under a launcher.
. "$(dirname "$0")/lib.bash"

for flag in --help -h --version --list; do
  run "$REDUCE_ALL" "$flag"
  expect_rc 0
  [ -s "$folder/err" ] && fail "nothing belongs on stderr"
  cp "$folder/out" "$folder/alone"
  launch 3 "$flag"
  expect_rc 0
  cmp -s "$folder/alone" "$folder/out" || fail "$flag differs under the launcher"
done

run "$REDUCE_ALL" --help
expect_out '\(64M\)'
expect_out '--nproc 2'
run "$REDUCE_ALL" --list
expect_out '^ +ring .*2\(P-1\)'
run "$REDUCE_ALL" --version
expect_out '^reduce_all [0-9]+\.[0-9]+\.[0-9]+ '
