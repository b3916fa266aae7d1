#!/usr/bin/env bash
# install.bash BUILD VERSION: `cmake --install` and cpack of that build folder make a prefix that can be moved, whose
# programs run and which find_package finds, and packages. A prefix that is not writable is left alone, and named.
. "$(dirname "$0")/../cli/lib.bash"
build=$1 version=$2 here=$(dirname "$(readlink -f "$0")")

run cmake --install "$build" --prefix /proc/lockstep
[ "$rc" -ne 0 ] || fail "installed into /proc"
expect_err "nothing is installed: cannot write to '/proc/lockstep': "
expect_err 'fix: cmake --install .* --prefix FOLDER'
mkdir "$folder/small"
if mount -t tmpfs -o size=8m none "$folder/small" 2>/dev/null; then
  run cmake --install "$build" --prefix "$folder/small/prefix"
  [ "$(find "$folder/small" -type f | wc -l)" -eq 0 ] || { umount "$folder/small" && fail "half an installation is left"; }
  umount "$folder/small"
  [ "$rc" -ne 0 ] || fail "installed where there is no room"
  expect_err 'nothing is installed: '
  tr -s '\n ' ' ' <"$folder/err" | grep -q 'No space left' || fail "does not say why" # CMake breaks lines
fi

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
# Each command has its page, and no page names a command that does not exist.
pages=$prefix/share/man/man1
for command in $("$prefix/bin/lockstep" --help | sed -n '/^Commands$/,/^$/s/^  \([a-z]*\)  .*/\1/p'); do
  [ -s "$pages/lockstep-$command.1" ] || fail "no manual page of lockstep $command"
done
for page in $(sed -n 's/^\.BR \(.*\) (1)$/\1/p' "$pages"/*.1 | tr -d '\\' | sort -u); do
  [ -s "$pages/$page.1" ] || fail "pages name $page, which is not there"
done
[ "$(grep -c '^\.BR ' "$pages/lockstep-doctor.1")" -ge 5 ] || fail "the page of lockstep doctor names no others"
# Links of pages work there, except those of CONTRIBUTING.md into the sources.
while read -r page; do
  while read -r link; do
    [ -e "${page%/*}/$link" ] || fail "$page links to $link, which is not there"
  done < <(grep -oE '\]\([^)#:]+[)#]' "$page" | sed 's/^](//; s/.$//')
done < <(find "$prefix/share/doc/lockstep" -name '*.md' ! -name CONTRIBUTING.md)
for file in doc/lockstep/CITATION.cff lockstep/spack/repo.yaml "lockstep/easybuild/lockstep-$version-gompi-2025b.eb"; do
  [ -s "$prefix/share/$file" ] || fail "no $file"
done
run "$prefix/bin/reduce_all" --nproc 2 -b 8 -e 1K -n 10 --algorithm ring
expect_rc 0
run "$prefix/bin/lockstep" train toy --max-steps 3 --nproc 2 --run-dir "$folder/r"
expect_rc 0

# A shell's completion offers what the programs' help has.
complete_words() { PATH=$prefix/bin:$PATH bash -c '. "$1"; COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)); _lockstep; echo "${COMPREPLY[*]}"' \
  bash "$prefix/share/bash-completion/completions/lockstep" "$@"; }
[ "$(complete_words lockstep tr)" = train ] || fail "completes to '$(complete_words lockstep tr)'"
[ "$(complete_words lockstep shard ver)" = verify ] || fail "completes to '$(complete_words lockstep shard ver)'"
[ "$(complete_words lockstep train dig)" = digits ] || fail "completes to '$(complete_words lockstep train dig)'"
[ "$(complete_words lockstep train digits --save-w)" = --save-weights ] || fail "completes to '$(complete_words lockstep train digits --save-w)'"
[ "$(complete_words reduce_all --expect)" = --expect-ranks ] || fail "completes to '$(complete_words reduce_all --expect)'"
[ "$(complete_words lockstep lint --site del)" = delta ] || fail "completes to '$(complete_words lockstep lint --site del)'"
[ "$(complete_words lockstep lint --site = hip)" = hipergator ] || fail "completes to '$(complete_words lockstep lint --site = hip)'"
[ "$(complete_words lockstep doctor --recipe mnist)" = mnist_cnn ] || fail "completes to '$(complete_words lockstep doctor --recipe mnist)'"
[ "$(complete_words reduce_all --algorithm ring,rab)" = ring,rabenseifner ] || fail "completes to '$(complete_words reduce_all --algorithm ring,rab)'"

# Another project, with nothing of this source or build folder.
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
  ! grep -q localhost "$folder/out" || fail "nobody answers for it"
  if grep -q 'LOCKSTEP_MPI_IS_OPENMPI:INTERNAL=1' "$build/CMakeCache.txt"; then
    expect_out 'Recommends: openmpi-bin'
  else
    expect_out 'Recommends: mpich'
  fi
  dpkg-deb --extract packed/*.deb deb
  [ -s deb/usr/share/doc/lockstep/copyright ] || fail "no copyright file"
  run deb/usr/bin/reduce_all --version
  expect_rc 0
fi
