#!/usr/bin/env bash
# modules.bash lmod|environment-modules BUILD SOURCE VERSION: the modulefiles of an installed prefix in the real module
# system: what loading sets, and that unload and purge restore the environment. Exits with 77 without that module
# system.
. "$(dirname "$0")/../cli/lib.bash"
system=$1 build=$2 source=$3 version=$4
cd "$folder" || exit 1 # scripts below keep states of the environment in files

# Debian installs only one of the two module systems; Environment Modules is unpacked beside Lmod.
case $system in
  lmod)
    init=/usr/share/lmod/lmod/init/bash
    [ -r "$init" ] || { echo "there is no Lmod (Debian: lmod)" && exit 77; }
    ;;
  environment-modules)
    init=$folder/init
    command=$(compgen -G '/usr/lib/*/modulecmd.tcl' | head -1)
    if [ -z "$command" ]; then
      (cd "$folder" && apt-get download environment-modules && dpkg-deb --extract environment-modules_*.deb em) >"$folder/out" 2>&1
      command=$(compgen -G "$folder/em/usr/lib/*/modulecmd.tcl")
      [ -n "$command" ] || { echo "there are no Environment Modules, and none to be had" && exit 77; }
    fi
    type tclsh >/dev/null 2>&1 || { echo "there is no tclsh" && exit 77; }
    echo "module() { eval \"\$(tclsh '$command' bash \"\$@\")\"; }" >"$init"
    ;;
esac

# in_modules SCRIPT: runs it in a shell with modules, and with this test's folders of modulefiles.
mkdir -p "$folder/site/openmpi" "$folder/site/mpich" "$folder/site/helper"
in_modules() {
  run env -i HOME="$folder" PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c ". $init; module use '$folder/site' '$folder/moved/share/lockstep/modulefiles'
    state() { env | grep -vE '^(_|SHLVL|PWD|OLDPWD|BASH_FUNC.*|[|{}[:space:]].*|_*LMFILES.*|LOADEDMODULES|.*_modshare|__MODULES.*|_ModuleTable.*|__LMOD.*|LMOD_.*)=' | sort; }
    $1"
}

run cmake --install "$build" --prefix "$folder/made"
expect_rc 0
mv "$folder/made" "$folder/moved"
prefix=$folder/moved

for leave in 'unload lockstep' purge; do
  in_modules "state >before; module load lockstep || exit; echo root=\$LOCKSTEP_ROOT; echo program=\$(command -v reduce_all)
    reduce_all --version; state >loaded; module $leave; state >after; cmp before loaded; diff before after && echo as it was"
  expect_rc 0
  expect_out "^root=$prefix\$"
  expect_out "^program=$prefix/bin/reduce_all\$"
  expect_out "^reduce_all $version "
  expect_out '^before loaded differ'
  expect_out '^as it was'
done
in_modules 'module help lockstep; module whatis lockstep; module avail lockstep'
expect_rc 0
cat "$folder/err" >>"$folder/out" # some print it there
expect_out 'which node is not'
expect_out "lockstep/$version"
expect_out 'Description: MPI-native HPC benchmark'

if [ "$system" = lmod ]; then
  in_modules "module --checkSyntax load lockstep && echo sound"
  expect_out sound
fi
if type man >/dev/null 2>&1; then
  for manpath in '' /usr/share/man; do # if it is set, the system's pages stay
    in_modules "${manpath:+export MANPATH=$manpath; }module load lockstep; man -w reduce_all; man -w bash || man -w mpirun || man -w ls"
    expect_out "^$prefix/share/man/man1/reduce_all.1"
  done
fi

# Two builds together are a mistake.
modulefiles=$prefix/share/lockstep/modulefiles/lockstep
for file in "$modulefiles/$version"*; do cp "$file" "${file/$version/0.0.9}"; done
in_modules "module load lockstep/$version && module load lockstep/0.0.9; echo \"\$LOADEDMODULES\""
! grep -qE '0\.0\.9.*/?lockstep.*[0-9]|lockstep/[^ ]*lockstep/' "$folder/out" || fail "both are loaded"
rm "$modulefiles"/0.0.9*

# A modulefile away from its installation reports that, and nothing is loaded.
mkdir -p "$folder/site/share/lockstep/modulefiles"
cp -r "$modulefiles" "$folder/site/share/lockstep/modulefiles/stray"
in_modules "module use '$folder/site/share/lockstep/modulefiles'; module load stray/$version; echo \"root=\${LOCKSTEP_ROOT-}\""
expect_err 'no installation around'
expect_out '^root=$'

# A link to it in the site's own tree works in the same way.
mkdir -p "$folder/linked/lockstep"
for file in "$modulefiles"/*; do ln -s "$file" "$folder/linked/lockstep"; done
in_modules "module unuse '$folder/moved/share/lockstep/modulefiles'; module use '$folder/linked'; state >before; module load lockstep
  echo root=\$LOCKSTEP_ROOT; module unload lockstep; state >after; diff before after && echo as it was"
expect_out "^root=$prefix\$"
expect_out '^as it was'

# Modules that a site needs are loaded and unloaded with it. An MPI of the other family is refused.
run cmake -S "$source" -B "$folder/configured" -DLOCKSTEP_BUILD_TRAINING=OFF -DLOCKSTEP_BUILD_TESTING=OFF -DLOCKSTEP_MODULE_DEPENDENCIES=helper
expect_rc 0
grep -rq 'make_page -o [^ ]* [^ ]* reduce_all reduce_all ' "$folder/configured" || fail "reduce_all alone refers to pages of others"
cp "$folder"/configured/modulefiles/* "$modulefiles"
printf '#%%Module1.0\nsetenv HELPER here\n' >"$folder/site/helper/1.0"
in_modules "state >before; module load lockstep; echo helper=\$HELPER; module unload lockstep; state >after; diff before after && echo as it was"
expect_rc 0
expect_out '^helper=here$'
[ "$system" = environment-modules ] || expect_out '^as it was'
for name in openmpi mpich; do
  if [ "$system" = lmod ]; then echo 'family("mpi")' >"$folder/site/$name/1.0.lua"; else echo '#%Module1.0' >"$folder/site/$name/1.0"; fi
done
ours=mpich other=openmpi
! grep -q 'openmpi hpcx' "$modulefiles/$version.lua" || ours=openmpi other=mpich
in_modules "module load helper $ours; module load lockstep; echo root=\$LOCKSTEP_ROOT"
expect_out "^root=$prefix"
in_modules "module load helper $other; module load lockstep; echo root=\${LOCKSTEP_ROOT-}"
tr '\n' ' ' <"$folder/err" | grep -q "was built for .*, but the MPI that is loaded is $other" || fail "not refused" # Lmod breaks lines
expect_out '^root=$'
