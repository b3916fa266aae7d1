# Helpers for tests of `lockstep shard`, on top of lib.bash.
. "$(dirname "$0")/lib.bash"

# shard VERB ARGUMENTS...: runs the program without a launcher.
shard() { run "$REDUCE_ALL" shard "$@"; }

# made VERB ARGUMENTS...: does the same, and must succeed.
made() {
  shard "$@"
  expect_rc 0
}

# expect_nothing_left PATH: expects neither the folder nor a temporary sibling of it.
expect_nothing_left() {
  local left
  left=$(find "$(dirname "$1")" -maxdepth 1 -name "*$(basename "$1")*")
  [ -z "$left" ] || fail "left behind: $left"
}

# expect_same A B: expects folders with the same files of the same bytes.
expect_same() { diff -r "$1" "$2" >/dev/null || fail "$1 and $2 differ"; }

# flip FILE OFFSET: changes the byte there.
flip() {
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
  # shellcheck disable=SC2059  # the format is the byte
  printf "\\x$(printf %02x $((byte ^ 0xa5)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
