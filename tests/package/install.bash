#!/usr/bin/env bash
# install.bash BUILD VERSION: what `cmake --install` and cpack make of that build folder: a prefix that can be moved, whose
# programs run, that find_package finds, and packages of it. A prefix that cannot be written to is left alone, and named.
. "$(dirname "$0")/../cli/lib.bash"
build=$1 version=$2 here=$(dirname "$(readlink -f "$0")")

run cmake --install "$build" --prefix /proc/lockstep
[ "$rc" -ne 0 ] || fail "installed into /proc"
expect_err "nothing is installed: cannot write to '/proc/lockstep': "
expect_err 'fix: cmake --install .* --prefix FOLDER'

run cmake --install "$build" --prefix "$folder/made"
expect_rc 0
mv "$folder/made" "$folder/prefix with a space"
prefix=$folder/prefix\ with\ a\ space
! grep -rqF "$folder/made" "$prefix" || fail "knows where it was installed: $(grep -rlF "$folder/made" "$prefix")"
for program in "$prefix"/bin/*; do
  run "$program" --version
  expect_rc 0
  expect_out "^${program##*/} $version "
  [ -s "$prefix/share/man/man1/${program##*/}.1" ] || fail "no manual page"
  ! readelf -d "$program" | grep -E 'R(UN)?PATH' | grep -qF "$build/" || fail "looks for libraries in the build folder"
  readelf -d "$program" | grep -E 'R(UN)?PATH' | grep -qF "\$ORIGIN/../lib" || fail "does not look for libraries beside it"
done
run "$prefix/bin/reduce_all" --nproc 2 -b 8 -e 1K -n 10 --algorithm ring
expect_rc 0
run "$prefix/bin/lockstep" train toy --max-steps 3 --nproc 2 --run-dir "$folder/r"
expect_rc 0

# What completion of a shell offers is what the programs say.
complete_words() { PATH=$prefix/bin:$PATH bash -c '. "$1"; COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)); _lockstep; echo "${COMPREPLY[*]}"' \
  bash "$prefix/share/bash-completion/completions/lockstep" "$@"; }
[ "$(complete_words lockstep tr)" = train ] || fail "completes to '$(complete_words lockstep tr)'"
[ "$(complete_words lockstep shard ver)" = verify ] || fail "completes to '$(complete_words lockstep shard ver)'"
[ "$(complete_words lockstep train dig)" = digits ] || fail "completes to '$(complete_words lockstep train dig)'"
[ "$(complete_words lockstep train digits --save-w)" = --save-weights ] || fail "completes to '$(complete_words lockstep train digits --save-w)'"
[ "$(complete_words reduce_all --expect)" = --expect-ranks ] || fail "completes to '$(complete_words reduce_all --expect)'"

# A project of somebody else, with nothing of this one's source or build folder.
run cmake -S "$here/consumer" -B "$folder/consumer" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
expect_rc 0
run cmake --build "$folder/consumer"
expect_rc 0
run ctest --test-dir "$folder/consumer" --output-on-failure --no-tests=error
expect_rc 0
expect_out '100% tests passed, 0 tests failed out of 2'
run cmake -S "$here/consumer" -B "$folder/newer" -DCMAKE_PREFIX_PATH="$prefix" -DWANTED=99
expect_rc 1
expect_err 'compatible with requested version|requested version "99"'

cd "$folder" || exit 1
run cpack --config "$build/CPackConfig.cmake" -G TGZ -B "$folder/packed"
expect_rc 0
tar -xzf packed/*.tar.gz
run ./lockstep-*/bin/reduce_all --version
expect_rc 0
if type dpkg-deb dpkg-shlibdeps >/dev/null 2>&1; then
  run cpack --config "$build/CPackConfig.cmake" -G DEB -B "$folder/packed"
  expect_rc 0
  run dpkg-deb --info packed/*.deb
  expect_rc 0
  expect_out 'Depends: .*libc6'
  dpkg-deb --extract packed/*.deb deb
  run deb/usr/bin/reduce_all --version
  expect_rc 0
fi
