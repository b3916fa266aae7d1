#!/usr/bin/env bash
# bundle.bash BUILD SOURCE: the bundle for GPU nodes after a move, in a root folder with bash and small tools, but
# without the libraries of the build. Its programs run on the host, and run-gpu-checks says that there is no GPU. With
# programs that play a GPU, it keeps results, continues with the remaining steps, and leaves out those that would not
# fit.
build=$1 source=$2 here=$(dirname "$(readlink -f "$0")")

# Mounts are made in a child's namespace and disappear with it, so removing the folder afterwards meets none.
if [ $# -eq 2 ]; then
  outside=$(mktemp -d)
  trap 'rm -rf "$outside"' EXIT
  for private in "unshare -m" "unshare -rm"; do
    $private true 2>/dev/null || continue
    $private bash "$0" "$build" "$source" "$outside"
    exit
  done
  echo "skipped: no mounts of its own can be had here"
  exit 77
fi
. "$here/../cli/lib.bash"
trap - EXIT
rmdir "$folder"
folder=$3

run "$source/share/bundle/make" "$build" "$folder/made"
expect_rc 0
expect_out 'MiB packed by tar -z; glibc 2\.[0-9]* or newer'
run "$source/share/bundle/make" "$build" "$folder/made"
expect_rc 2
expect_err 'exists already'
run "$source/share/bundle/make" "$folder" "$folder/other"
expect_rc 2

# A root folder with the programs that the scripts call, the C library, and nothing else.
root=$folder/root
mkdir -p "$root"/{bin,dev/shm,etc,proc,sys,tmp,cuda}
for tool in awk bash cat chmod cp cut date dirname env getconf grep head ldconfig ls mkdir mv paste readlink rm sed sleep sort tail \
  timeout touch tr uname uniq wc; do
  path=$(PATH=$PATH:/sbin:/usr/sbin command -v "$tool") || fail "no $tool here"
  cp -L "$path" "$root/bin/$tool"
  while read -r library; do
    mkdir -p "$root${library%/*}"
    cp -L "$library" "$root$library"
  done < <(ldd "$path" 2>/dev/null | grep -oE '/[^ )]+')
done
system=$(ldd /bin/bash | grep -oE '/[^ ]*/libc\.so\.6') && system=${system%/*}
for library in libdl.so.2 libm.so.6 libpthread.so.0 libresolv.so.2 librt.so.1 libutil.so.1; do
  cp -L "$system/$library" "$root$system/" || fail "no $library beside libc"
done
mkdir -p "$root/usr/bin" && ln -s /bin/env "$root/usr/bin/env"
ln -s /proc/self/fd "$root/dev/fd"
echo 'root:x:0:0::/tmp:/bin/bash' >"$root/etc/passwd"
echo '127.0.0.1 localhost' >"$root/etc/hosts"
for node in null zero full urandom random; do
  touch "$root/dev/$node"
  mount --bind "/dev/$node" "$root/dev/$node" || fail "cannot mount /dev/$node"
done
mount --rbind -o ro /proc "$root/proc" || fail "cannot mount /proc"
mount --rbind -o ro /sys "$root/sys" || fail "cannot mount /sys"
mount -t tmpfs none "$root/dev/shm" || fail "cannot mount /dev/shm"
mv "$folder/made" "$root/moved here"

# Copies of the CUDA libraries that the bundle names, as a node has them.
while read -r name; do
  library=$(ldd "$build"/bin/{gpu_tests,lockstep,reduce_all} | sed -n "s/^\t$name => \([^ ]*\).*/\1/p" | head -n 1)
  [ -e "$library" ] || fail "$name, which the bundle needs, is not here"
  cp -L "$library" "$root/cuda/"
done <"$root/moved here/share/bundle/needs"
folders=/cuda

# in_root COMMAND...: runs it there, without this system's variables.
in_root() {
  # shellcheck disable=SC2016  # for the shell in there
  run "$(PATH=$PATH:/sbin:/usr/sbin command -v chroot)" "$root" /bin/env -i PATH=/bin HOME=/tmp TMPDIR=/tmp OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    OMPI_MCA_rmaps_base_oversubscribe=1 LOCKSTEP_CUDA_LIBRARIES="$folders" /bin/bash -c 'cd /tmp && "$@"' bash "$@"
}
bundle='/moved here'
for program in lockstep reduce_all; do
  in_root "$bundle/bin/$program" --version
  expect_rc 0
  expect_out "^$program [0-9]"
done
for n in 1 2; do
  in_root "$bundle/bin/lockstep" train toy --max-steps 1 --nproc "$n" --run-dir "/tmp/run-$n"
  expect_rc 0
  grep -q "\"ranks\":$n," "$root/tmp/run-$n/log.jsonl" || fail "no run of $n ranks"
done
in_root "$bundle/bin/reduce_all" --nproc 2 -b 8 -e 1K -n 10 --algorithm ring,mpi
expect_rc 0
in_root "$bundle/bin/gpu_tests"
expect_rc 77
expect_out 'no GPU: no NVIDIA driver'

in_root "$bundle/run-gpu-checks" --list
expect_rc 0
expect_out '^parity  '
[ "$(awk '{ print $1 }' "$folder/out" | sed -n '/^kernels$/,/^self-test$/p' | paste -s -d ' ')" = 'kernels plans self-test' ] ||
  fail "no step of plans behind that of kernels"
in_root "$bundle/run-gpu-checks"
expect_rc 77
expect_out 'no GPU: no NVIDIA driver on this machine; use a node with GPUs'
for wrong in --minutes=3 '--minutes 0' '--minutes' 'no_such_step'; do
  # shellcheck disable=SC2086  # words
  in_root "$bundle/run-gpu-checks" $wrong
  expect_rc 2
  [ "$(wc -l <"$folder/err")" -eq 2 ] || fail "more than what is wrong, and what to do"
done

# A driver, but another CUDA.
touch "$root/dev/nvidiactl"
name=$(head -n 1 "$root/moved here/share/bundle/needs")
mkdir "$root/other"
touch "$root/other/${name%.so.*}.so.7"
kept=$folders folders=/other
in_root "$bundle/run-gpu-checks"
expect_rc 2
expect_err "lacks, of CUDA: .*$name"
expect_err "has only /other/${name%.so.*}.so.7"
expect_err '^fix: '
folders=$kept

# With a played GPU: one step passes, one fails, and a step that needs more than the remaining time is left out.
cat >"$root/moved here/libexec/gpu_facts" <<'EOF'
#!/bin/bash
echo "a played GPU, asked for $1"
EOF
printf '#!/bin/bash\necho "conv is off"\nexit 1\n' >"$root/moved here/libexec/gpu_tests"
printf '#!/bin/bash\necho "reduce_all, with $* and no --device"\n' >"$root/moved here/libexec/reduce_all"
in_root "$bundle/run-gpu-checks" versions
expect_rc 0
results=$root/tmp/gpu-check-results
grep -qP '^versions\tpassed\t\d+\t$' "$results/results.tsv" || fail "no line of versions"
grep -q 'played GPU, asked for versions' "$results/versions.txt" || fail "what it said is lost"
in_root "$bundle/run-gpu-checks" plans
expect_rc 0
grep -q 'played GPU, asked for plans' "$results/plans.txt" || fail "plans asks for something else"
sed -i '/^plans/d' "$results/results.tsv"
in_root "$bundle/run-gpu-checks" parity
expect_rc 1
grep -qP '^parity\tfailed\t\d+\texit status 1: conv is off$' "$results/results.tsv" || fail "no line of parity"
in_root "$bundle/run-gpu-checks" --minutes 1 memcheck
expect_rc 1
expect_out '2 steps done, 1 failed, 1 left for another call'
sed -i 's/^parity.*//;/^$/d' "$results/results.tsv"
in_root "$bundle/run-gpu-checks" --minutes 1
expect_rc 3
expect_out 'left for another call$'
! grep -q '^versions  ' "$folder/out" || fail "runs again what has passed"
in_root "$bundle/run-gpu-checks" --minutes 2 reduce-staged-4
expect_rc 0
grep -qx 'reduce_all, with --algorithm staged --nproc 4 --device cuda --share-gpu and no --device' "$results/reduce-staged-4.txt" ||
  fail "reduce-staged-4 asks for something else"
in_root "$bundle/run-gpu-checks" memcheck
expect_rc 0
grep -qP '^memcheck\tskipped\t\d+\tthere is no compute-sanitizer$' "$results/results.tsv" || fail "no line of memcheck"

# A step that continues from call to call, here the comparison with PyTorch, has no line before its end.
cat >"$root/bin/python3" <<'EOF'
#!/bin/bash
[ "$1" = -c ] && exit 1
echo "asked: ${*##*/}"
exit 3
EOF
chmod +x "$root/bin/python3"
in_root "$bundle/run-gpu-checks" pytorch
expect_rc 3
expect_out '1 left for another call$'
! grep -q '^pytorch' "$results/results.tsv" || fail "pytorch has a line"
grep -q '^asked: run --lockstep lockstep --out pytorch ' "$results/pytorch.txt" || fail "runs something else"
[ -x "$root/moved here/share/compare/gpu/run" ] || fail "there is no comparison in it"
