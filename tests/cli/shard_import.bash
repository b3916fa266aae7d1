#!/usr/bin/env bash
# Import of files another program made: MNIST's IDX, CSV, and HDF5 of h5py.
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

mkdir -p "$folder/torch/MNIST" && cp -r "$folder/idx" "$folder/torch/MNIST/raw"
made import mnist "$folder/torch" --out "$folder/mt"
expect_same "$folder/m" "$folder/mt"

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

# npy FILE TYPE SHAPE: NumPy's header, without the padding that it may have.
npy() {
  local header="{'descr': '$2', 'fortran_order': False, 'shape': ($3,), }"
  printf '\x93NUMPY\x01\x00\x'"$(printf %x ${#header})"'\x00%s' "$header" >"$1"
}
npy "$folder/imgs.npy" '|u1' '3, 2' && printf 'abcdef' >>"$folder/imgs.npy"
npy "$folder/names.npy" '|S1' 3 && printf 'wxw' >>"$folder/names.npy"
made import npy "$folder/imgs.npy" "$folder/names.npy" --out "$folder/pair" --nproc 2
made head "$folder/pair"
expect_out '^id 1 +label 1 .*x: \[99, 100\]'
shard import npy "$folder/imgs.npy" --out "$folder/bad"
expect_rc 2
expect_err 'give the file of the labels behind it'

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
printf 'a,species\n1,wasp\n2,ant\n3,wasp\n' >"$folder/t.csv"
made import csv "$folder/t.csv" --out "$folder/cw"
expect_err 'labels: 2 words taken as classes in sorted order: ant, wasp'
made import csv "$folder/t.csv" --out "$folder/cw2" --nproc 2
expect_same "$folder/cw" "$folder/cw2"
made head "$folder/cw"
expect_out '^id 0 +label 1 '
printf 'a,b,y\n1,2,0\n3,oops,1\n' >"$folder/t.csv"
shard import csv "$folder/t.csv" --out "$folder/bad"
expect_rc 2
expect_err 't\.csv'
expect_err 'oops'
expect_nothing_left "$folder/bad"

# NaN and infinity are data, but are said, as is what labels are no classes for: once.
printf 'a,b,y\n1,nan,0.5\n-inf,4,1.5\n5,6,2.5\n' >"$folder/t.csv"
made import csv "$folder/t.csv" --out "$folder/nan" --nproc 2
expect_err '2 of 6 values of x are NaN or infinite'
[ "$(grep -c NaN "$folder/err")" -eq 1 ] || fail "one line is enough"
for label in -1 70000; do
  printf 'a,b,y\n1,2,0\n3,4,%s\n5,6,1.5\n' "$label" >"$folder/t.csv"
  made import csv "$folder/t.csv" --out "$folder/numbers$label" --nproc 2
  expect_err "y is taken as numbers, not as classes: .*t\.csv, line 3 has '$label', no whole number from 0 to 65535"
  [ "$(grep -c 'taken as' "$folder/err")" -eq 1 ] || fail "one line is enough"
done

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

# HDF5 files as h5py writes them: links of every kind, compression, types; each is imported as the plain one is, or named.
python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import h5py' 2>/dev/null && echo "$p" && break; done)
[ -n "$python" ] || exit 0
mkdir "$folder/h5" && cd "$folder/h5" || exit 1
"$python" - <<'EOF'
import h5py, numpy
from h5py import ExternalLink, SoftLink
x, y = numpy.arange(40, dtype="f4").reshape(10, 4), numpy.arange(10) % 3

def write(name, **members):
    with h5py.File(name + ".h5", "w") as file:
        for path, member in members.items():
            if isinstance(member, (SoftLink, ExternalLink)):
                file[path.replace("__", "/")] = member
            else:
                data, options = member if isinstance(member, tuple) else (member, {})
                file.create_dataset(path.replace("__", "/"), data=data, **options)

write("plain", x=x, y=y)
write("good_soft", d__x=x, d__y=y, x=SoftLink("/d/x"), y=SoftLink("d/y"))
write("good_group", d__x=x, d__y=y, train=SoftLink("/d"))
write("far_dataset", x=ExternalLink("plain.h5", "/x"), y=ExternalLink("plain.h5", "/y"))
write("far_group", train=ExternalLink("plain.h5", "/"))
write("good_self", d__x=x, d__y=y, x=ExternalLink("good_self.h5", "/d/x"), y=ExternalLink("good_self.h5", "/d/y"))
write("good_gzip", x=(x, {"compression": "gzip", "shuffle": True, "fletcher32": True}), y=y)
write("good_chunks", x=(x, {"chunks": (3, 2), "maxshape": (None, None)}), y=y.astype(">i2"))
write("good_big_endian", x=x.astype(">f4"), y=y.astype(">u8"))
write("bad_loop", x=SoftLink("/x"), y=y)
write("bad_dangling", x=x, y=SoftLink("/nothing"))
write("bad_gone", x=ExternalLink("gone.h5", "/x"), y=y)
write("bad_lzf", x=(x, {"compression": "lzf"}), y=y)
write("bad_compound", x=numpy.zeros(10, dtype=[("a", "f4"), ("b", "i4")]), y=y)
write("words", x=x, y=(["zero", "one", "two"] * 3 + ["zero"], {"dtype": h5py.string_dtype()}))
write("bad_text", x=(["a"] * 10, {"dtype": h5py.string_dtype()}), y=y)
write("bad_empty", x=x[:0], y=y[:0])
write("float16", x=x.astype("f2"), y=y % 2 == 1)
EOF
n_done=0
made import hdf5 plain.h5 --out expected
for file in good_*.h5; do
  made import hdf5 "$file" --out "of_$file" --nproc $((n_done++ % 2 + 1))
  expect_same expected "of_$file"
done
for file in far_*.h5; do
  shard import hdf5 "$file" --out "of_$file"
  expect_rc 2
  expect_err "another file, 'plain.h5'"
  expect_nothing_left "of_$file"
  made import hdf5 "$file" --out "of_$file" --allow-external-files --nproc $((n_done++ % 2 + 1))
  expect_same expected "of_$file"
done
made import hdf5 float16.h5 --out float16
made stat float16
expect_out 'x +float16 \[4\]'
made head float16 -n 2
expect_out '^id 1 +label 1 .*x: \[4, 5, 6, 7\]'

made import hdf5 words.h5 --out words --nproc 2
expect_err 'labels: 3 words taken as classes in sorted order: one, two, zero'
made head words -n 2
expect_out '^id 0 +label 2 '
expect_out '^id 1 +label 0 '

# expect_bad NAME WORDS
expect_bad() {
  shard import hdf5 "bad_$1.h5" --out "of_bad" --nproc 2
  expect_rc 2
  expect_one_error
  expect_err "$2"
  expect_err "bad_$1\.h5"
  expect_err 'expected: '
  expect_err 'fix: '
  expect_nothing_left of_bad
}
expect_bad loop "the link /x leads nowhere: it points to '/x'"
expect_bad dangling "the link /y leads nowhere: it points to '/nothing'"
expect_bad gone "another file, 'gone.h5'"
expect_bad lzf 'filter 32000 \(lzf\)'
expect_bad compound 'compound elements of 8 bytes'
expect_bad text 'text elements'
expect_bad empty 'shape \[0, 4\]'
