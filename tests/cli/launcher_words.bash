#!/usr/bin/env bash
# Under --nproc, a failure is one message; the launcher's own messages are shown only with --verbose. The same holds
# without a folder for temporary files, and without an MPI that starts.
. "$(dirname "$0")/lib.bash"
is_open_mpi() { "$MPIEXEC" --version | grep -q 'Open MPI\|OpenRTE'; }

# expect_alone: expects the error and the lines that belong to it, and nothing else.
expect_alone() {
  expect_one_error
  [ "$(grep -cvE '^(error|  expected|  fix): ' "$folder/err")" -eq 0 ] || fail "more than the message"
}

broken=(-e 4K -f 8 -n 5 --algorithm ring,mpi --csv "$folder/no/r.csv" --nproc 2)
run "$REDUCE_ALL" "${broken[@]}"
expect_rc 2
expect_alone
run "$REDUCE_ALL" "${broken[@]}" --verbose
expect_rc 2
if is_open_mpi; then
  [ "$(wc -l <"$folder/err")" -gt 5 ] || fail "the launcher is not shown"
fi

# A launcher that does not return the exit code of its ranks. It may be one for several nodes, without a chosen network.
printf '#!/bin/sh\n"%s" "$@"\nexit 0\n' "$MPIEXEC" >"$folder/launcher"
chmod +x "$folder/launcher"
run env OMPI_MCA_btl_tcp_if_include=lo LOCKSTEP_MPIEXEC="$folder/launcher" "$REDUCE_ALL" "${broken[@]}"
expect_rc 2
expect_alone

# A reader that leaves is no fault of the program.
for nproc in '' '--nproc 2'; do
  # shellcheck disable=SC2016,SC2086  # it is the other shell's; words
  run bash -c '"$0" -e 64 -n 5 --algorithm ring,mpi $2 2>"$1/told" | head -n 1; exit "${PIPESTATUS[0]}"' "$REDUCE_ALL" "$folder" "$nproc"
  [ "$rc" -eq 0 ] || expect_rc 141
  grep '[^[:space:]]' "$folder/told" && fail "that was said on stderr"
done

# A folder that MPI needs is checked before MPI starts.
for nproc in '' '--nproc 2'; do
  # shellcheck disable=SC2086  # words
  run env TMPDIR=/proc/nosuch "$REDUCE_ALL" -e 1K -n 2 $nproc
  expect_rc 2
  expect_alone
  expect_err "cannot make temporary files in '/proc/nosuch'.*TMPDIR"
done

# A reason that would crash MPI's launcher is reported before that starts.
run bash -c 'ulimit -s 64 && exec "$0" -e 1K -n 2 --nproc 2' "$REDUCE_ALL"
expect_rc 3
expect_alone
expect_err 'the stack limit is 64 KiB'
if "$MPIEXEC" --version | grep -q 'OpenRTE) 4\|Open MPI) 4' && unshare --uts true 2>/dev/null; then
  # shellcheck disable=SC2016  # it is the other shell's
  run unshare --uts bash -c 'hostname "$(printf "h%.0s" {1..57})" && exec "$0" -e 1K -n 2 --nproc 2' "$REDUCE_ALL"
  expect_rc 3
  expect_alone
  expect_err "the host name 'h+' has 57 characters before its first dot"
fi

# If MPI cannot start, its own exit code is not passed on: 1 would mean a wrong element.
if is_open_mpi; then
  for nproc in '' '--nproc 2'; do
    # shellcheck disable=SC2086  # words
    run env OMPI_MCA_pml=nosuch "$REDUCE_ALL" -e 1K -n 2 $nproc
    expect_rc 3
    expect_err 'MPI failed to start'
    expect_one_error
  done
fi
exit 0
