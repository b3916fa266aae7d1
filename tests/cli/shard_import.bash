#!/usr/bin/env bash
# Import of files another program made: MNIST's IDX, and CSV.
. "$(dirname "$0")/shard_lib.bash"
mkdir "$folder/idx"

# Three 2x2 images and their labels.
printf '\0\0\x08\x03\0\0\0\x03\0\0\0\x02\0\0\0\x02\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\xff' \
  >"$folder/idx/train-images-idx3-ubyte"
printf '\0\0\x08\x01\0\0\0\x03\x07\x00\x09' >"$folder/idx/train-labels-idx1-ubyte"
made import mnist "$folder/idx" --out "$folder/m"
expect_out 'train 3 in 1 shard'
made verify "$folder/m"
made head "$folder/m"
expect_out '^id 0 +label 7 .*x: \[1, 2, 3, 4\]'
expect_out '^id 2 +label 9 .*x: \[9, 10, 11, 255\]'
if command -v h5dump >/dev/null; then
  run h5dump -H "$folder"/m/*.h5
  expect_rc 0
  run h5dump -d /y "$folder/m/train-00000.h5"
  expect_out '7, 0, 9'
fi
if command -v gzip >/dev/null; then
  cp -r "$folder/idx" "$folder/idxgz"
  gzip "$folder"/idxgz/*
  made import mnist "$folder/idxgz" --out "$folder/mgz" --nproc 2
  expect_same "$folder/m" "$folder/mgz"
fi

# Damaged inputs are named, and leave nothing.
truncate -s 27 "$folder/idx/train-images-idx3-ubyte"
shard import mnist "$folder/idx" --out "$folder/bad" --nproc 2
expect_rc 2
expect_one_error
expect_err 'train-images-idx3-ubyte'
expect_nothing_left "$folder/bad"
shard import mnist "$folder/nowhere" --out "$folder/bad"
expect_rc 2
expect_err 'nowhere'

printf 'a,b,y\n1,2,0\n3,4.5,1\n5,6,0\n' >"$folder/t.csv"
made import csv "$folder/t.csv" --out "$folder/c"
expect_err 'labels: whole numbers up to 1 taken as 2 classes; --no-classes'
made import csv "$folder/t.csv" --out "$folder/cn" --no-classes
[ -s "$folder/err" ] && grep -q classes "$folder/err" && fail "no classes were asked for"
made stat "$folder/cn"
expect_out 'y +float32'
expect_out 'classes +none'
made head "$folder/c" -n 3
expect_out '^id 1 .*x: \[3, 4\.5\]'
made import csv "$folder/t.csv" --out "$folder/c2" --x-columns a --y-column b
made head "$folder/c2" -n 1
expect_out '^id 0 .*x: 1$|^id 0 .*x: \[1\]$'
printf 'a,b,y\n1,2,0\n3,oops,1\n' >"$folder/t.csv"
shard import csv "$folder/t.csv" --out "$folder/bad"
expect_rc 2
expect_err 't\.csv'
expect_err 'oops'
expect_nothing_left "$folder/bad"

# NaN is data, but is said.
printf 'a,b,y\n1,nan,0.5\n3,4,1.5\n' >"$folder/t.csv"
made import csv "$folder/t.csv" --out "$folder/nan" --nproc 2
expect_err '1 of 4 values of x are NaN'
[ "$(grep -c NaN "$folder/err")" -eq 1 ] || fail "one line is enough"

# Names are shown without what a terminal would obey.
printf 'a,b\033[31m,y\n1,oops,0\n' >"$folder/t.csv"
shard import csv "$folder/t.csv" --out "$folder/bad"
expect_err 'b\\x1b\[31m'

# A shard of another set is not a truncated one.
made synth toy --out "$folder/one" --samples 100
made synth toy --out "$folder/two" --samples 2000
cp "$folder/two/train-00000.h5" "$folder/one/train-00000.h5"
for verb in verify head; do
  shard "$verb" "$folder/one"
  expect_rc 1
  grep -q 'of another set' "$folder/out" "$folder/err" || fail "another set is not recognised"
done
