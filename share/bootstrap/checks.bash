# The tiers of tests that ./bootstrap runs: check, check-builds, check-long. Each consists of parts; one that fails does not
# stop the others.
# shellcheck shell=bash

# Runs in build folder $1 the tests that the other arguments select for ctest.
run_tests() {
  local -a ctest=(ctest --test-dir "$1" -j $((3 * n_cores)) --output-on-failure --no-tests=error "${@:2}")
  say "testing in $1"
  # Older thread sanitizers do not start where addresses are chosen at random from a large space.
  [[ $(cache_value "$1" LOCKSTEP_SANITIZE) != thread ]] || ! setarch -R true 2>/dev/null || ctest=(setarch -R "${ctest[@]}")
  "${ctest[@]}" </dev/null 2>&1 | tee -a "$log" && return
  failed_tests=$(sed 's/^[0-9]*:/    /' "$1"/Testing/Temporary/LastTestsFailed*.log 2>/dev/null)
  return 1
}

# Builds target $3 in folder $1 by preset $2; the rest are -D options.
build_tests() {
  configure "$1" "$2" -DLOCKSTEP_BUILD_TESTING=ON "${@:4}" && compile "$1" --target "$3"
}

# Runs a part of the check under the name $1 and keeps a line on it for the end, and the tests that failed.
verdicts=() n_failed=0 failed_tests=
part() {
  local name=$1 start=$SECONDS verdict=passed
  shift
  failed_tests=
  printf '\n'
  say "== $name"
  "$@" || { verdict=FAILED n_failed=$((n_failed + 1)); }
  verdicts+=("$(printf '  %-30s %-7s %5d s' "$name" "$verdict" "$((SECONDS - start))")${failed_tests:+$'\n'$failed_tests}")
}

# Keeps a line for the end on part $1, which cannot run here for reason $2.
leave_out() { verdicts+=("$(printf '  %-30s skipped: %s' "$1" "$2")"); }

# Prints the result of each part; fails if one failed.
conclude() {
  [[ $training == ON ]] || leave_out lockstep "see above what is missing"
  printf '\n'
  say "$n_failed of ${#verdicts[@]} parts failed; all output is in $log"
  printf '%s\n' "${verdicts[@]}"
  ((n_failed == 0))
}

# Builds all that is tested in $build, kernels for one generation of GPUs if the folder is new.
build_all() {
  local one
  one=$(cache_value "$build" LOCKSTEP_ONE_CUDA_ARCHITECTURE)
  [[ ! $(stale_reason "$build") ]] || one=ON
  build_tests "$build" release all "-DLOCKSTEP_ONE_CUDA_ARCHITECTURE=${one:-OFF}"
}

# Lists which tests of the last run in $build were skipped, and why; fails if tests/may_skip.txt does not allow one.
tell_skipped() { "$root/tests/support/skipped" "$build/Testing/Temporary/LastTest.log" "$root/tests/may_skip.txt"; }

# Prints a digest of what tests read beside programs: the system, and the files of the source folder that are not compiled.
digest_of_surroundings() {
  {
    uname -srm
    nproc --all
    id -u
    grep -m 2 -E '^(model name|flags)' /proc/cpuinfo
    cat "$build/toolchain.txt" /var/lib/dpkg/status 2>/dev/null
    cd "$root" && find . \( -path ./.git -o -path './build*' \) -prune -o -type f ! -path './src/*' ! -path './training/*' \
      ! -path './reduce_all/*' ! -name '*.[ch]pp' -print0 | sort -z | xargs -0 sha256sum
  } | sha256sum | cut -d ' ' -f 1
}

# Prints a digest of the files that are compiled.
digest_of_sources() {
  (cd "$root" && find src training reduce_all share/cmake CMakeLists.txt -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)
}

# Prints how many tests did not run, because nothing that they read has changed since they passed.
tell_passed_before() {
  local n
  n=$(grep -c '^\[passed before\]$' "$build/Testing/Temporary/LastTest.log") || return 0
  say "$n tests did not run again: they passed with the same programs, files and system (./bootstrap check all runs them)"
}

check_all() {
  local status=0
  build_all || return
  [[ ! ${1:-} ]] || rm -rf -- "$build/passed"
  mkdir -p -- "$build/passed" && find "$build/passed" -type f -mtime +30 -delete
  LOCKSTEP_PASSED=$build/passed LOCKSTEP_PASSED_WITH=$(digest_of_surroundings) LOCKSTEP_SOURCES=$(digest_of_sources) run_tests "$build" -LE '^long$' || status=1
  tell_passed_before
  tell_skipped || status=1
  return "$status"
}

# Runs the tests that are not long and have not passed with what they read now; with an argument, those that have, too.
check() {
  prepare check
  part "release" check_all "$@"
  conclude
}

# Other numbers of ranks are part of the check. Three ranks cover odd numbers; tests with threads as ranks use up to eight.
check_asan() {
  build_tests "$build-asan" asan sanitized_tests && run_tests "$build-asan" -L '^(unit|np3|sanitized)$' -LE '^long$'
}

check_tsan() { build_tests "$build-tsan" tsan tsan_tests && run_tests "$build-tsan" -L '^tsan$' -LE '^long$'; }

# With MPICH: the tests of reduce_all that depend on the MPI.
check_mpich() {
  local training=OFF of_mpi='mpi[.].*np[12]|mpi[.](comm(_without_mpi_collectives)?|metrics|runtime)[.]np3|fault'
  of_mpi+='|cli[.](bad_input|disk_full|files|injected|launcher_words|signals)'
  build_tests "$build-mpich" quick mpi_tests "-DMPI_CXX_COMPILER=$(command -v mpicxx.mpich)" \
    "-DMPIEXEC_EXECUTABLE=$(command -v mpiexec.mpich)" && run_tests "$build-mpich" -R "^($of_mpi)" -LE '^long$'
}

# Some seconds of search for each reader of files, and ten minutes.
check_fuzz() { build_tests "$build-fuzz" fuzz fuzz_targets && run_tests "$build-fuzz" -L '^fuzzing$'; }
check_fuzz_long() { build_tests "$build-fuzz" fuzz fuzz_targets && run_tests "$build-fuzz" -R '^long[.]fuzz[.]'; }

# Run a part under the name $1 where what it needs is there: check_mpich, and the function $2.
part_mpich() {
  if type mpicxx.mpich mpiexec.mpich >/dev/null 2>&1; then
    part "$1" check_mpich
  else
    leave_out "$1" "needs mpicxx.mpich and mpiexec.mpich"
  fi
}
part_fuzz() {
  if [[ $training == ON ]] && has_libfuzzer >/dev/null 2>&1; then
    part "$1" "$2"
  else
    leave_out "$1" "needs lockstep, and a clang++ with libFuzzer"
  fi
}

# Runs tests in other builds: those named, or all.
check_builds() {
  local name purpose=check
  (($#)) || set -- asan tsan mpich fuzz
  [[ " $* " != *' '@(mpich|fuzz)' '* ]] || purpose=builds
  prepare "$purpose"
  for name; do
    case $name in
      asan) part "address, undefined sanitizers" check_asan ;;
      tsan) part "thread sanitizer" check_tsan ;;
      mpich) part_mpich "MPICH" ;;
      fuzz) part_fuzz "libFuzzer" check_fuzz ;;
    esac
  done
  conclude
}

# Prints the names of the long tests in $build of which $1, as in 2/6, is a share, as one regular expression.
share_of_long() {
  ctest --test-dir "$build" -N -L '^long$' | sed -n 's/^ *Test *#[0-9]*: //p' |
    awk -v k="${1%/*}" -v n="${1#*/}" 'NR % n == k % n { names = names "|" $0 } END { print "^(" substr(names, 2) ")$" }'
}

check_long_tests() { build_all && run_tests "$build" -L '^long$' -R "$(share_of_long "$1")" && tell_skipped; }

# Runs the long tests: share $1 (as in 2/6) of those of the release build, or all, and then those of libFuzzer.
check_long() {
  prepare builds
  part "long${1:+, $1}" check_long_tests "${1:-1/1}"
  [[ ${1:-} ]] || part_fuzz "libFuzzer, long" check_fuzz_long
  conclude
}
