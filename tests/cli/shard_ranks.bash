#!/usr/bin/env bash
# The same bytes for any number of ranks, as launched; of all verbs: tests/program.
. "$(dirname "$0")/shard_lib.bash"

# same NAME VERB ARGUMENTS...: the verb with 1, 2 and 3 ranks.
same() {
  local name=$1 n
  shift
  for n in 1 2 3; do made "$@" --out "$folder/$name.$n" --nproc "$n"; done
  expect_same "$folder/$name.1" "$folder/$name.2"
  expect_same "$folder/$name.1" "$folder/$name.3"
  made verify "$folder/$name.3" --nproc 2
}

same digits synth digits --samples 2000 --shard-size 256K --chunk-size 64K
same zstd pack "$folder/digits.1" --compress zstd --shard-size 128K --chunk-size 32K --shuffle
made pack "$folder/digits.1" --out "$folder/other" --seed 2 --shuffle
diff -r "$folder/digits.1" "$folder/other" >/dev/null && fail "a difference would not be seen"
exit 0
