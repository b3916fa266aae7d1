#!/usr/bin/env bash
# Checks that a file compiles, and that -DMISTAKE is refused with the words after "// refused: " in its first line (a
# regex). usage: check.sh <compiler> <include folder> <file>
set -euo pipefail
compile=("$1" -std=c++20 -fsyntax-only -I "$2")
words=$(sed -n '1s|^// refused: ||p' "$3")
[ -n "$words" ] || { echo "$3 does not say how it is refused"; exit 1; }
"${compile[@]}" "$3"
if report=$("${compile[@]}" -DMISTAKE "$3" 2>&1); then
  echo "$3 compiles with its mistake"
  exit 1
fi
grep -qE "$words" <<<"$report" || { printf 'not in the words "%s":\n%s\n' "$words" "$report"; exit 1; }
