#include "reduce_all/texts.hpp"

#include <fmt/format.h>

#include "core/instruction_sets.hpp"
#include "core/table.hpp"
#include "core/version.hpp"
#include "reduce_all/options.hpp"
#include "reduce_all/participants.hpp"
#include "runtime/fault.hpp"

namespace lockstep::reduce_all {

std::string help_text() {
  core::Flags flags{""};
  Options options;
  declare(flags, options);
  return std::string{R"(reduce_all: measures how fast and how correct the all-reduce of this machine is

Times every algorithm in one run, verifies every element, and reports each as a share of the measured limit.
Start it by the launcher of your MPI, or by --nproc:

  reduce_all --nproc 2                              8 B to 64 MiB, float32, sum, all algorithms; under a minute
  mpirun -n 4 reduce_all -b 1M -e 1M -n 100         one size, 100 samples
  mpirun -n 4 reduce_all --baseline before.json     compare with the result of `--json before.json`
  srun -N 2 -n 128 reduce_all --expect-ranks 128 --json r.json
  reduce_all --nproc 4 --demo                       the tutorials' example: the sum of the ranks' numbers

)"} + flags.help(27) +
         R"(
Columns (share/doc/lockstep/share/doc/reading-results.md): `time p50` is the median of the slowest rank's time, with the
95 % interval of that median. algbw is size/time. busbw is algbw times 2(P-1)/P as in nccl-tests, or (P-1)/P for
reduce_scatter and all_gather.
%limit is algbw as a share of the measured limit: copying, reading other cores' caches, or the links between GPUs. cores is
the round trip of a cache line between ranks (110>560: the cores moved). `*` marks the fastest.
On GPUs, `time p50` is the host's, from the call to the end of the wait; GPU p50 is the time between two events.
)" + std::string{core::instruction_limit_help} +
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
