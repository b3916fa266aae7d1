#!/usr/bin/env bash
# Files that other programs read or write: JSON by its schemas, shards by HDF5's tools, files that h5py writes, and
# files of launched ranks. tests/program has what the verbs do with them.
. "$(dirname "$0")/shard_lib.bash"
schemas=$(cd "$(dirname "$0")/../../share/schemas" && pwd)
cd "$folder" || exit 1

# expect_schema SCHEMA FILE
expect_schema() {
  python3 -c 'import jsonschema' 2>/dev/null || return 0
  python3 - "$schemas/$1" "$2" <<'PY' || fail "$2 is not as $1 says"
import json, jsonschema, sys
schema, document = (json.load(open(file)) for file in sys.argv[1:])
jsonschema.Draft202012Validator.check_schema(schema)
jsonschema.Draft202012Validator(schema).validate(document)
PY
}

for kind in digits toy ratings; do
  made synth "$kind" --out "$kind" --samples 500
  expect_schema shards-1.schema.json "$kind/manifest.json"
  made stat "$kind" --json
  expect_schema shard_stat-1.schema.json out
  cp out "$kind.json"
done
if command -v python3 >/dev/null; then
  python3 - digits.json <<'PY' || fail "not the JSON it should be"
import json, sys
s = json.load(open(sys.argv[1]))
assert s["x"] == {"dtype": "uint8", "shape": [28, 28]} and len(s["classes"]) == 10, s
assert s["splits"][0]["samples"] == 500 and sum(s["splits"][0]["samples_by_class"]) == 500, s
PY
fi
made synth digits --out d --samples 3000 --shard-size 1M --chunk-size 128K
made synth digits --out d3 --samples 3000 --shard-size 1M --chunk-size 128K --nproc 3
expect_same d d3
made bench d --seconds 0.1 --json b.json --nproc 2
expect_schema shard_bench-1.schema.json b.json
made pack d --out packed --compress zstd
[ "$(du -sb packed | cut -f1)" -lt "$(du -sb d | cut -f1)" ] || fail "zstd is no smaller"
if command -v h5dump >/dev/null; then
  run h5dump -H d/train-00000.h5
  expect_rc 0
  expect_out 'DATASET "x"'
  run h5dump -d /id -c 4 d/train-00000.h5
  expect_rc 0
  expect_out '0, 1, 2, 3'
fi

python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import h5py' 2>/dev/null && echo "$p" && break; done)
[ -n "$python" ] || exit 0
"$python" - <<'EOF'
import h5py, numpy
from h5py import ExternalLink, SoftLink
x, y = numpy.arange(40, dtype="f4").reshape(10, 4), numpy.arange(10) % 3
with h5py.File("plain.h5", "w") as file:
    file["x"], file["y"] = x, y
with h5py.File("other.h5", "w") as file:
    file.create_dataset("d/x", data=x.astype(">f4"), chunks=(3, 2), maxshape=(None, None), compression="gzip", shuffle=True, fletcher32=True)
    file["train"], file["d/y"] = SoftLink("/d"), ExternalLink("plain.h5", "/y")
with h5py.File("types.h5", "w") as file:
    file["x"] = x.astype("f2")
    file.create_dataset("y", data=["zero", "one", "two"] * 3 + ["zero"], dtype=h5py.string_dtype())
with h5py.File("lzf.h5", "w") as file:
    file.create_dataset("x", data=x, compression="lzf")
    file["y"] = y
with h5py.File("compound.h5", "w") as file:
    file["x"], file["y"] = numpy.zeros(10, dtype=[("a", "f4"), ("b", "i4")]), y
with h5py.File("empty.h5", "w") as file:
    file["x"], file["y"] = x[:0], y[:0]
EOF
made import hdf5 plain.h5 --out expected
made import hdf5 other.h5 --out other --allow-external-files
expect_same expected other
made import hdf5 types.h5 --out types
expect_out 'labels: 3 words taken as classes in sorted order: one, two, zero'
made head types -n 2
expect_out '^id 1 +label 0 .*x: \[4, 5, 6, 7\]'
# refused FILE WORDS
refused() {
  local words
  shard import hdf5 "$1" --out bad
  expect_rc 2
  expect_one_error
  for words in "$2" "$1" 'expected: ' 'fix: '; do expect_err "$words"; done
  expect_nothing_left bad
}
refused other.h5 "another file, 'plain.h5'"
refused lzf.h5 'filter 32000 \(lzf\)'
refused compound.h5 'compound elements of 8 bytes'
refused empty.h5 'shape \[0, 4\]'
