#include "reduce_all/texts.hpp"

#include <fmt/format.h>

#include "core/table.hpp"
#include "core/version.hpp"
#include "reduce_all/participants.hpp"
#include "runtime/fault.hpp"

namespace lockstep::reduce_all {

std::string help_text() {
  return std::string{R"(reduce_all: is this machine's all-reduce as fast, and as right, as it should be?

Measures every algorithm side by side, checks every element, and prints times and the share of what this machine allows.
Start it under your MPI's launcher, or let it start itself:

  reduce_all --nproc 2                              8 B to 64 MiB, float32, sum, all algorithms; under a minute
  mpirun -n 4 reduce_all -b 1M -e 1M -n 100         one size, 100 samples
  mpirun -n 4 reduce_all --baseline before.json     has anything become slower since `--json before.json`?
  srun -N 2 -n 128 reduce_all --expect-ranks 128 --json r.json
  reduce_all --nproc 4 --demo                       a first look: every rank brings its number, the sum is known

What is measured                                                                              (default)
  -b, --min-bytes S        smallest size: 8, 64K, 1.5M, 1G; powers of 1024                    (8)
  -e, --max-bytes S        largest size                                                       (64M)
  -f, --step-factor X      each size is the one before times X                                (2)
  -i, --step-bytes S       each size is the one before plus S, instead of -f
  -d, --dtype T,...|all    int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64  (float32)
                           also half, bf16, float, double ...; `all` rounds sizes up to whole elements
  -o, --op O,...|all       sum prod min max avg                                               (sum)
                           min and max are NaN where any rank has a NaN (with `mpi` as the library does)
      --collective C       all_reduce, reduce_scatter or all_gather; a size is the whole vector's  (all_reduce)
      --algorithm A,...|all  see --list; auto: the one that lockstep train chooses              (all that apply)
      --in-place           input and output are the same memory                               (out of place)
How it is measured
  -n, --iterations N       samples per row; below 10 us, and on GPUs, a sample is the mean of a block of runs  (8 to 1000 by time)
  -w, --warmup-iterations N  untimed runs before each row; the first is checked too           (5)
  -c, --check N            checked runs per row, between the timed ones, all elements; 0: none  (4)
      --buffers B          hot: same buffers; dirty: input rewritten before each sample; cold: not in cache  (hot)
      --sync Y             barrier: one before each sample; none: samples back to back        (barrier)
      --seed N             test data and order of algorithms                                  (1)
      --max-time T         end after T, the size in hand with fewer samples: 30s, 5min, 1h    (0: no limit)
      --timeout T          name the rank that hangs, and end, after T without progress; 0: never  (60s)
Where
      --nproc N            start N ranks on this machine with the MPI of this build
      --verbose            with --nproc: also what the launcher says about a job that failed
      --expect-ranks N     end at once unless the job has N ranks
      --ranks-per-node K   pretend that every K ranks of a node are a node of their own
      --device D           where the vectors are. auto: GPUs where every rank has one, else the host; host; cuda: GPUs, or
                           an error  (auto)
      --share-gpu          several ranks may have the same GPU; by way of the host (staged) or by MPI, as NCCL refuses that
      --graph              on GPUs: calls are recorded once in a CUDA graph and replayed, so that the host launches
                           each sample at once; of NCCL's rows alone
  -R, --register H         on GPUs: vectors are memory that NCCL has registered, each rank's by itself (local) or all
                           ranks' as one window (symmetric); in nccl-tests' words 0, 1, 2        (none)
Of nccl-tests
  --minbytes, --maxbytes, --stepbytes, --stepfactor, --datatype, --iters, --warmup_iters, -T for --timeout,
  -J, --output_file for --json: other names; -g, --ngpus 1, -t, --nthreads 1, -p, -z, -C 0 or 1, -a 3, -m, -N 1, -r, -G 0: accepted,
  as that is done anyway
Results
      --json F, --csv F    every row with all figures; valid however the run ends (long ones lack the last second)
      --samples            keep every time in the JSON file
      --visits N           after the table visit every size N times more, briefly, for comparisons  (10 with --json, --baseline)
      --verdict            end with a few sentences about these numbers
Is it slower than before? (share/doc/regression.md)
      --baseline F[,F...]  compare with these JSON files of launches before; exit 1 if it has become slower
      --now F[,F...]       measure nothing: compare these with them; five or more launches on each side tell most
      --tolerance P        what takes up to P percent longer is still the same                (5)
      --junit F            the comparison as JUnit's XML, a test case per row
      --list               the algorithms with their steps and bytes
      --demo               the known answer of the tutorials; exit 1 if it is wrong
      --inject FAULT,...   a fire drill: what is below happens on purpose; N: the Nth time, or each; else the first
  -h, --help, --version

How to read a row: `time p50` is the median of the slowest rank's time, with the 95 % interval of that median; algbw is
size/time; busbw is algbw times 2(P-1)/P, as in nccl-tests; %limit: algbw against what copying or, in caches, reading
from other cores, or on GPUs the links between them allow; cores: round trip of a cache line between them (110>560: they
moved meanwhile); `*`: fastest.
On GPUs time is that of the host's clock, from before the call to the end of one wait; GPU p50 that between two events,
behind other calls.
For reduce_scatter and all_gather busbw is algbw times (P-1)/P. On an idle machine the bare command takes half a minute.
In the environment ONEDNN_MAX_CPU_ISA=AVX2 (or SSE41) does without newer vector instructions, in lockstep train alike.
Exit codes: 0 right, 1 a wrong element or slower than the baseline, 2 usage, 3 system or MPI, 4 a hang; 128+n ended by signal n (a launcher may make
another of it, such as 1: look at "complete" in the JSON file).
Faults to inject: a rank ...
)"} + runtime::fault_help(runtime::FaultTaker::reduce_all);
}

std::string version_text() {
  return fmt::format("reduce_all {} ({}, {})\n", core::version(), core::compiler(), core::build_type());
}

std::string list_text() {
  const core::Table table{{{.header = "algorithm", .unit = "", .width = 18, .align = core::Align::left},
                           {.header = "does", .unit = "", .width = 6, .align = core::Align::left},
                           {.header = "steps", .unit = "", .width = 40, .align = core::Align::left},
                           {.header = "bytes per rank", .unit = "", .width = 35, .align = core::Align::left},
                           {.header = "what it is", .unit = "", .width = 0, .align = core::Align::left}},
                          "# "};
  std::string text = "# P ranks, S bytes of vector, for all_reduce; a: all_reduce, s: reduce_scatter, g: all_gather\n";
  text += table.header();
  for (const comm::Algorithm& algorithm : comm::algorithms()) {
    std::string does;
    for (const auto& [collective, letter] : {std::pair{comm::Collective::all_reduce, 'a'},
                                             {comm::Collective::reduce_scatter, 's'},
                                             {comm::Collective::all_gather, 'g'}})
      does += algorithm.does(collective) ? letter : '-';
    text += table.row({std::string{algorithm.name}, does, std::string{algorithm.steps}, std::string{algorithm.bytes},
                       std::string{algorithm.summary}});
  }
  text += table.row(
      {std::string{auto_name}, "asg", "those of what it runs", "those of what it runs", std::string{auto_summary}});
  return text;
}

std::string text_for(Task task) {
  switch (task) {
    case Task::help: return help_text();
    case Task::version: return version_text();
    case Task::list: return list_text();
    case Task::measure:
    case Task::compare:
    case Task::demo: break;
  }
  return "";
}

}  // namespace lockstep::reduce_all
