#!/usr/bin/env bash
# job_scripts.bash SOURCE: the templates are clean: nothing but notes from batch/check, and nothing from shellcheck.
. "$(dirname "$0")/../cli/lib.bash"
cd "$1/batch" || exit 1
LOCKSTEP=$REDUCE_ALL run ./check ./*/*.sbatch ./*/*.pbs ./generic/*.sh
expect_rc 0
expect_out ': 0 errors, 0 warnings, '
[ "$(grep -c 'note: edit this line: .* is still CHANGE_ME' "$folder/out")" -ge 20 ] || fail "placeholders are not named"
[ "$(grep -c 'note: not yet runnable: ' "$folder/out")" -eq "$(grep -l -- '--device cuda' ./*/*.sbatch ./*/*.pbs ./generic/*.sh | wc -l)" ] || fail "not every template for GPUs"
# A copy in another folder is judged as the site that it is for.
for script in ./*/*.sbatch ./*/*.pbs ./*/*.sh; do
  [[ $script == ./lib/* ]] || grep -qx "# lockstep: site=$(basename "$(dirname "$script")")" "$script" || fail "$script does not name its site"
done
# What templates for GPUs say of other cards: so many ranks, cores and GPUs fit there.
n_variants=0
while IFS=: read -r file flags; do
  edits=()
  for word in $flags; do [[ $word != --* ]] || edits+=(-e "s|^#SBATCH ${word%%=*}=.*|#SBATCH ${word//&/\\&}|"); done
  sed "${edits[@]}" "$file" >"$folder/${file##*/}"
  LOCKSTEP=$REDUCE_ALL run ./check "$folder/${file##*/}"
  [ "$rc" -eq 0 ] || fail "$file $flags"
  n_variants=$((n_variants + 1))
done < <(grep -o '^# .*: *sbatch --.*' ./*/*_gpu*.sbatch | sed -E 's/:# .*: *sbatch /:/')
[ "$n_variants" -ge 15 ] || fail "$n_variants variants"
type shellcheck >/dev/null 2>&1 || { echo "there is no shellcheck" && exit 77; }
# What a script gets from the files it reads shellcheck does not see.
run shellcheck --severity=warning --shell=bash --exclude=SC1090,SC1091,SC2154,SC2034 ./*/*.sbatch ./*/*.pbs ./*/*.sh ./lib/resize ./check
expect_rc 0
