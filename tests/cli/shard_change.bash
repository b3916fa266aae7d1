#!/usr/bin/env bash
# pack, split and merge: the samples stay what they are, whatever holds them.
. "$(dirname "$0")/shard_lib.bash"
samples() { made head "$1" --split "$2" -n 100000 && cp "$folder/out" "$folder/samples.$3"; }

made synth digits --out "$folder/d" --samples 700
samples "$folder/d" train old

for filter in deflate zstd lz4 none; do
  made pack "$folder/d" --out "$folder/$filter" --compress "$filter" --chunk-size 64K --shard-size 256K
  made verify "$folder/$filter"
  samples "$folder/$filter" train new
  cmp -s "$folder/samples.old" "$folder/samples.new" || fail "other samples after $filter"
done
[ "$(du -sb "$folder/zstd" | cut -f1)" -lt "$(du -sb "$folder/none" | cut -f1)" ] || fail "zstd is no smaller"
made stat "$folder/zstd"
expect_out 'compression +zstd'
# Back again, with the defaults: the bytes of the first folder.
made pack "$folder/zstd" --out "$folder/back" --compress none
expect_same "$folder/d" "$folder/back"
made pack "$folder/zstd" --out "$folder/kept" --level 19
made stat "$folder/kept"
expect_out 'compression +zstd'

made pack "$folder/d" --out "$folder/mixed" --shuffle --seed 4
samples "$folder/mixed" train mixed
cmp -s "$folder/samples.old" "$folder/samples.mixed" && fail "--shuffle changed nothing"
grep -v '^id ' "$folder/samples.old" | sort | cmp -s - <(grep -v '^id ' "$folder/samples.mixed" | sort) ||
  fail "--shuffle has other samples"

made synth toy --out "$folder/t" --samples 700
made split "$folder/t" --out "$folder/s" --val 0.3 --seed 2
expect_out 'train 490 in 1 shard, val 210 in 1 shard'
made verify "$folder/s"
shard split "$folder/s" --out "$folder/s2" --val 0.5
expect_rc 2
expect_err '--join'
made split "$folder/s" --out "$folder/s2" --val 0.5 --join
expect_out 'train 350 in 1 shard, val 350 in 1 shard'

# The two splits together are the samples there were, in another order; so are sets put together.
samples "$folder/t" train t
samples "$folder/s" train part
samples "$folder/s" val rest
contents() { sed 's/^id [0-9]* *//' "$@"; }
contents "$folder/samples.part" "$folder/samples.rest" | sort | cmp -s - <(contents "$folder/samples.t" | sort) ||
  fail "split has other samples"
made merge "$folder/s" "$folder/t" --out "$folder/sum"
expect_out 'train 1190 in 1 shard, val 210 in 1 shard'
made verify "$folder/sum"
samples "$folder/sum" train sum
contents "$folder/samples.part" "$folder/samples.t" | cmp -s - <(contents "$folder/samples.sum") ||
  fail "merge does not put one set after the other"
[ "$(tail -n 1 "$folder/samples.sum" | cut -d' ' -f2)" -eq 1189 ] || fail "ids are not given anew"

made synth images --out "$folder/i" --samples 10 --height 28 --width 28 --channels 1
shard merge "$folder/d" "$folder/i" --out "$folder/bad"
expect_rc 2
expect_err 'x is uint8 \[28, 28\], and uint8 \[28, 28, 1\] in '
expect_nothing_left "$folder/bad"

made synth ratings --out "$folder/r" --samples 300
made pack "$folder/r" --out "$folder/r2" --chunk-size 4K
made verify "$folder/r2"
