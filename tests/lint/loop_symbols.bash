#!/usr/bin/env bash
# loop_symbols.bash NM FOLDER: loops for AVX that were compiled there define one symbol for each set, by which they are found. A weak
# symbol, such as an inline function of std, would be shared: the linker might keep the copy for AVX, for all processors.
set -euo pipefail
mapfile -t objects < <(find "$2" -name '*_avx2.cpp.o' -o -name '*_avx512.cpp.o' -o -name '*_vbmi.cpp.o')
[[ "${objects[*]}" == *_avx2.cpp.o* && "${objects[*]}" == *_avx512.cpp.o* ]] || { echo "no loops for AVX were compiled in $2"; exit 1; }
failures=0
for object in "${objects[@]}"; do
  symbols=$("$1" -C --defined-only --extern-only "$object" | grep '^[0-9a-f]' || true)
  if [ "$(grep -c . <<<"$symbols")" != 1 ] || [[ $symbols != *' T '* ]]; then
    printf '%s: expected one symbol, which is strong, found:\n%s\n' "$object" "$symbols"
    failures=$((failures + 1))
  fi
done
echo "${#objects[@]} sets of loops, $failures with other symbols than their own"
((failures == 0))
