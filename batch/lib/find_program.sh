# Source it as `. find_program.sh`; it is in a folder lib/ beside what uses it.
# find_program: prints the path of lockstep: $LOCKSTEP, or that of this installation, of PATH, or of the build in the source tree.
find_program() {
  local here program
  here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
  for program in "${LOCKSTEP:-}" "$here/../../../../bin/lockstep" "$(command -v lockstep)" "$here/../../build/bin/lockstep"; do
    [[ ! -x $program || -d $program ]] || { printf '%s\n' "$program" && return; }
    [[ $program != "${LOCKSTEP:-}" || ! $program ]] || return 1 # the one that was asked for is not there
  done
  return 1
}
