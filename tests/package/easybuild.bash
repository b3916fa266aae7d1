#!/usr/bin/env bash
# easybuild.bash BUILD SOURCE: runs EasyBuild's own checks of its recipe: style, and that all its dependencies are
# known. EasyBuild comes from PyPI, once for a build folder. Exits with 77 if it or Lmod is not available.
. "$(dirname "$0")/../cli/lib.bash"
build=$1 recipes=$2/share/easybuild
python=$build/deps/easybuild
[ -r /usr/share/lmod/lmod/init/bash ] || { echo "there is no Lmod (Debian: lmod)" && exit 77; }
. /usr/share/lmod/lmod/init/bash
if [ ! -e "$python/complete" ]; then
  { rm -rf "$python" && python3 -m venv "$python" && "$python/bin/pip" --quiet install easybuild pycodestyle && touch "$python/complete"; } \
    >"$folder/out" 2>&1 || { tail -n 3 "$folder/out" && echo "there is no EasyBuild to be had" && exit 77; }
fi
export PATH=$python/bin:$PATH EB_PYTHON=$python/bin/python HOME=$folder EASYBUILD_PREFIX=$folder/eb
export EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES=1
cd "$folder" || exit 1
run eb --check-style "$recipes"/*.eb
expect_rc 0
sed 's/^name = .*/name = "lockstep" /' "$recipes/lockstep-0.1.0-gompi-2025b.eb" >untidy.eb # a blank at the end of a line
run eb --check-style untidy.eb
[ "$rc" -ne 0 ] || fail "finds nothing"
run eb --dry-run --robot="$recipes:" "$recipes/lockstep-0.1.0-gompi-2025b.eb"
expect_rc 0
expect_out 'module: lockstep/0.1.0-gompi-2025b'
expect_out 'module: Kokkos/'
version=$(sed -n 's/^project(lockstep VERSION \([0-9.]*\).*/\1/p' "$2/CMakeLists.txt")
grep -qx "version = '$version'" "$recipes"/lockstep-*.eb || fail "the recipe is not for version $version"
grep -qF "version(\"$version\")" "$2/share/spack/packages/lockstep/package.py" || fail "Spack's recipe is not for version $version"
grep -qx "version: $version" "$2/CITATION.cff" || fail "CITATION.cff is not for version $version"
grep -q "^## \[$version\] - " "$2/CHANGELOG.md" || fail "CHANGELOG.md has no heading for version $version"
