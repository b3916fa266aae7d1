#!/usr/bin/env bash
# files.bash schemas|weights: other programs read and write the files of a run. The environment names WRITE_EXAMPLE and
# SCHEMAS.
set -eu
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# python_with MODULE: sets $python, or skips the test.
python_with() {
  for python in python3 /usr/bin/python3; do
    if "$python" -c "import $1" 2>/dev/null; then return; fi
  done
  echo "python3 with $1 is missing"
  exit 77
}

case $1 in
  schemas)
    python_with jsonschema
    "$WRITE_EXAMPLE" "$folder"
    "$python" "$here/validate_run.py" "$folder/run" "$SCHEMAS" train evaluation
    ;;
  weights)
    python_with h5py
    "$WRITE_EXAMPLE" "$folder"
    "$python" "$here/check_weights.py" read "$folder/w.h5"
    "$python" "$here/check_weights.py" write "$folder/theirs.h5"
    [ "$("$WRITE_EXAMPLE" --read "$folder/theirs.h5")" = $'a.weight 6\nb 2\nmodel \'\'' ]
    ;;
esac
