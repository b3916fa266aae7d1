#include "reduce_all/texts.hpp"

#include <fmt/format.h>

#include "core/instruction_sets.hpp"
#include "core/table.hpp"
#include "core/version.hpp"
#include "reduce_all/participants.hpp"
#include "runtime/fault.hpp"

namespace lockstep::reduce_all {

std::string help_text() {
  return std::string{R"(reduce_all: measures how fast and how correct the all-reduce of this machine is

Times every algorithm in one run, verifies every element, and reports each as a share of the measured limit.
Start it by the launcher of your MPI, or by --nproc:

  reduce_all --nproc 2                              8 B to 64 MiB, float32, sum, all algorithms; under a minute
  mpirun -n 4 reduce_all -b 1M -e 1M -n 100         one size, 100 samples
  mpirun -n 4 reduce_all --baseline before.json     compare with the result of `--json before.json`
  srun -N 2 -n 128 reduce_all --expect-ranks 128 --json r.json
  reduce_all --nproc 4 --demo                       the tutorials' example: the sum of the ranks' numbers

Vectors and algorithms                                                                        (default)
  -b, --min-bytes S        smallest size: 8, 64K, 1.5M, 1G; powers of 1024                    (8)
  -e, --max-bytes S        largest size                                                       (64M)
  -f, --step-factor X      factor between sizes                                               (2)
  -i, --step-bytes S       difference between sizes, instead of -f
  -d, --dtype T,...|all    int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64  (float32)
                           also half, bf16, float, double ...; `all` rounds sizes up to whole elements
  -o, --op O,...|all       sum prod min max avg                                               (sum)
                           min and max return NaN if any rank has a NaN (`mpi`: as the library does)
      --collective C       all_reduce, reduce_scatter or all_gather; sizes are of the whole vector  (all_reduce)
      --algorithm A,...|all  --list describes them; auto: the choice of lockstep train          (all that apply)
      --in-place           input and output share memory                                      (out of place)
Measurement
  -n, --iterations N       samples per row; below 10 us, and on GPUs, a sample is the mean of a block of runs  (8 to 1000 by time)
  -w, --warmup-iterations N  untimed runs before each row; the first is verified              (5)
  -c, --check N            verified runs per row, between the timed ones, all elements; 0: none  (4)
      --buffers B          hot: the same buffers; dirty: input rewritten before each sample; cold: not in cache  (hot)
      --sync Y             barrier: before each sample; none: samples back to back            (barrier)
      --seed N             test data and order of algorithms                                  (1)
      --max-time T         end after T; the current size gets fewer samples: 30s, 5min, 1h    (0: no limit)
      --timeout T          after T without progress, name the rank that hangs and end; 0: never  (60s)
Ranks and devices
      --nproc N            start N ranks on this machine with the MPI of this build
      --verbose            with --nproc: also print the launcher's messages about a failed job
      --expect-ranks N     end at once if the job does not have N ranks
      --ranks-per-node K   simulate nodes: every K ranks of a node are one
      --device D           place of the vectors. auto: GPUs if every rank has one, else the host; host; cuda: GPUs, or an
                           error  (auto)
      --share-gpu          several ranks may share a GPU, with `staged` or `mpi`: NCCL refuses that
      --graph              on GPUs: record calls in a CUDA graph and replay it, so that the host launches each
                           sample at once; NCCL rows only
  -R, --register H         on GPUs: register the vectors with NCCL, for each rank (local) or as one window of all
                           ranks (symmetric); none, local, symmetric, or 0, 1, 2 as in nccl-tests  (none)
Flags of nccl-tests
  other names: --minbytes, --maxbytes, --stepbytes, --stepfactor, --datatype, --iters, --warmup_iters, -T (--timeout),
  -J, --output_file (--json)
  accepted with the value that reduce_all always uses, and refused with others:
    1: -g, --ngpus, -t, --nthreads, -m, -N     0: -r, -G     3: -a     0 or 1: -p, -z, -C
Results
      --json F, --csv F    every row with all figures; valid if the run is killed, too (then up to a second is missing)
      --samples            keep the time of every sample in the JSON file
      --visits N           after the table, measure every size N times more, for comparisons  (10 with --json, --baseline)
      --verdict            end with a few sentences about the result
Comparison (share/doc/lockstep/share/doc/regression.md)
      --baseline F[,F...]  compare with earlier launches (JSON files); exit code 1 if this one is slower
      --now F[,F...]       measure nothing: compare these files with --baseline; best are five or more launches a side
      --tolerance P        up to P percent longer counts as the same                          (5)
      --junit F            the comparison as JUnit XML, a test case for each row and one for all together
Other
      --list               list the algorithms with their steps and bytes
      --demo               the tutorials' example; exit code 1 if the sum is wrong
      --inject FAULT,...   fire drill: cause the faults listed at the end
  -h, --help, --version

Columns (share/doc/lockstep/share/doc/reading-results.md): `time p50` is the median of the slowest rank's time, with the
95 % interval of that median. algbw is size/time. busbw is algbw times 2(P-1)/P as in nccl-tests, or (P-1)/P for
reduce_scatter and all_gather.
%limit is algbw as a share of the measured limit: copying, reading other cores' caches, or the links between GPUs. cores is
the round trip of a cache line between ranks (110>560: the cores moved). `*` marks the fastest.
On GPUs, `time p50` is the host's, from the call to the end of the wait; GPU p50 is the time between two events.
)"} + std::string{core::instruction_limit_help} +
         R"(Exit codes: 0 correct, 1 wrong element or slower than the baseline, 2 usage, 3 system or MPI, 4 hang, 128+n ended by signal n
(a launcher may return another code, such as 1: see "complete" in the JSON file).
Faults to inject; N: at the Nth time, or `each` (the first unless given). A rank ...
)" + runtime::fault_help(runtime::FaultTaker::reduce_all);
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
  std::string text =
      "# P ranks, S bytes of vector, for all_reduce if it does that; a: all_reduce, s: reduce_scatter, g: all_gather\n";
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
  text += table.row({std::string{auto_name}, "asg", "as the algorithm it runs", "as the algorithm it runs",
                     std::string{auto_summary}});
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
