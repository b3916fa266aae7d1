#include "reduce_all/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/flags.hpp"
#include "core/instruction_sets.hpp"
#include "core/suggest.hpp"
#include "reduce_all/check_options.hpp"
#include "reduce_all/participants.hpp"
#include "reduce_all/sizes.hpp"
#include "runtime/launcher.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr int many = std::numeric_limits<int>::max();
constexpr int most_visits = 1000;
constexpr int visits_kept = 10;              // where results are kept or compared
constexpr int most_iterations = 10'000'000;  // of a row, kept by every rank
constexpr std::array all_buffer_modes{BufferMode::hot, BufferMode::dirty, BufferMode::cold};
constexpr std::array all_syncs{Sync::barrier, Sync::none};

// Splits "a,b" into {"a", "b"}; keeps empty words, which the parser of words refuses.
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  for (std::size_t comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = text.find(',', begin);
    words.push_back(text.substr(begin, comma == std::string::npos ? comma : comma - begin));
  }
  return words;
}

// Returns every distinct value of a comma list, in the given order.
template <class ParseWord>
auto parse_list(const std::string& text, ParseWord parse_word) {
  std::vector<decltype(parse_word(text))> values;
  for (const std::string& word : split_list(text)) {
    auto value = parse_word(word);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
  }
  return values;
}

// Whether the text is "all", or a list that contains it.
bool is_all(const std::string& text) {
  const std::vector<std::string> words = split_list(text);
  return std::find(words.begin(), words.end(), "all") != words.end();
}

core::DType parse_dtype(const std::string& word) {
  if (const auto dtype = core::find_dtype(word)) return *dtype;
  core::fail_unknown("dtype", word, "--dtype", core::names_of(core::all_dtypes));
}

std::string parse_path(const std::string& word) {
  if (!word.empty()) return word;
  core::fail_usage(
      {.what = "a file name is empty", .where = "--baseline, --now", .expected = "FILE or FILE,FILE,...", .fix = ""});
}

// Reads "5" and "5%" as 0.05.
double parse_percent(const std::string& text) {
  const std::string number = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  return core::parse_number(number, "--tolerance", 0.0, 1000.0, "percent from 0 to 1000, such as 5") / 100;
}

std::string parse_algorithm(const std::string& word) {
  if (comm::find_algorithm(word) != nullptr || word == auto_name) return word;
  std::vector<std::string> names = core::names_of(comm::algorithms());
  names.insert(names.end(), {std::string{auto_name}, "all"});
  core::fail_unknown("algorithm", word, "--algorithm", names);
}

// Also accepts nccl-tests' numbers.
comm::Registration parse_registration(const std::string& word) {
  for (std::size_t i = 0; i < comm::all_registrations.size(); ++i)
    if (word == std::to_string(i)) return comm::all_registrations[i];
  return core::find_named(comm::all_registrations, word, "registration", "--register");
}

void parse_dtypes(const std::string& text, Options& options) {
  options.is_every_dtype = is_all(text);
  if (options.is_every_dtype)
    options.dtype.assign(core::all_dtypes.begin(), core::all_dtypes.end());
  else
    options.dtype = parse_list(text, parse_dtype);
}

void parse_ops(const std::string& text, Options& options) {
  if (is_all(text))
    options.op.assign(comm::all_reduce_ops.begin(), comm::all_reduce_ops.end());
  else
    options.op = parse_list(
        text, [](const std::string& word) { return core::find_named(comm::all_reduce_ops, word, "op", "--op"); });
}

/// A flag of nccl-tests that is accepted only with the value that reduce_all always uses.
struct Borrowed {
  std::string_view flag;
  std::string_view fitting;  ///< values that request what is always done
  std::string_view expected;
  std::string_view fix;
};

constexpr std::array borrowed{
    Borrowed{"-g,--ngpus", "1", "1: every rank is a process of its own",
             "start more ranks with the launcher, or --nproc N"},
    Borrowed{"-t,--nthreads", "1", "1: every rank is a process of its own",
             "start more ranks with the launcher, or --nproc N"},
    Borrowed{"-p,--parallel_init", "0,1", "0 or 1: ranks always start at the same time", "leave it out"},
    Borrowed{"-z,--blocking", "0,1", "0 or 1: the benchmark always waits for every run",
             "for runs back to back use --sync none"},
    Borrowed{"-C,--report_cputime", "0,1", "0 or 1: times are always the host's; a column has the GPU's",
             "leave it out"},
    Borrowed{"-a,--average", "3", "3: a time is always the slowest rank's", "leave it out"},
    Borrowed{"-m,--agg_iters", "1", "1: runs below 10 us are timed in blocks automatically", "use -n for more samples"},
    Borrowed{"-r,--root", "0", "0: no collective here has a root", "leave it out"},
    Borrowed{"-N,--run_cycles", "1", "1: one pass over the sizes", "use -n for more samples"},
    Borrowed{"-G,--cudagraph", "0", "0: calls are not recorded in CUDA graphs",
             "--graph records and replays as many as a sample has"},
};

void require_fitting(const Borrowed& flag, const std::string& text) {
  const std::vector<std::string> fitting = split_list(std::string{flag.fitting});
  if (std::find(fitting.begin(), fitting.end(), text) != fitting.end()) return;
  core::fail_usage({.what = fmt::format("'{}' is not supported", text),
                    .where = core::long_name(std::string{flag.flag}),
                    .expected = std::string{flag.expected},
                    .fix = std::string{flag.fix}});
}

std::string help_of_borrowed() {
  std::string help = R"(Flags of nccl-tests
  other names: --minbytes, --maxbytes, --stepbytes, --stepfactor, --datatype, --iters, --warmup_iters, --local_register,
  --output_file (--json)
  accepted with the value that reduce_all always uses, and refused with others:
)";
  for (const std::string_view fitting : {"0", "1", "3", "0,1"}) {
    std::vector<std::string> names;
    for (const Borrowed& flag : borrowed)
      if (flag.fitting == fitting) names.push_back(core::join(split_list(std::string{flag.flag})));
    help += fmt::format("    {}: {}\n", core::join(split_list(std::string{fitting}), " or "), core::join(names));
  }
  return help;
}

void declare_what(core::Flags& flags, Options& o) {
  flags.heading("Vectors and algorithms");
  flags.bytes("-b,--min-bytes,--minbytes S", o.min_bytes, "smallest size: 8, 64K, 1.5M, 1G; powers of 1024");
  flags.bytes("-e,--max-bytes,--maxbytes S", o.max_bytes, "largest size");
  flags.value("-f,--step-factor,--stepfactor X", {"factor between sizes", "2"}, [&o](const std::string& text) {
    o.step_factor =
        core::parse_number(text, "--step-factor", std::nextafter(1.0, 2.0), 1e9, "a factor above 1, such as 2");
  });
  flags.value("-i,--step-bytes,--stepbytes S", "difference between sizes, instead of -f",
              [&o](const std::string& text) { o.step_bytes = core::parse_bytes(text, "--step-bytes"); });
  flags.value("-d,--dtype,--datatype T,...|all",
              {core::join(core::names_of(core::all_dtypes), " ") +
                   "; also half, bf16, float, double ...; `all` rounds sizes up to whole elements",
               "float32"},
              [&o](const std::string& text) { parse_dtypes(text, o); });
  flags.value("-o,--op O,...|all",
              {core::join(core::names_of(comm::all_reduce_ops), " ") +
                   "; min and max return NaN if any rank has a NaN (`mpi`: as the library does)",
               "sum"},
              [&o](const std::string& text) { parse_ops(text, o); });
  flags.choice("--collective C", "collective", o.collective, comm::all_collectives,
               core::join(core::names_of(comm::all_collectives)) + "; sizes are of the whole vector");
  flags.value("--algorithm A,...|all", {"--list describes them; auto: the choice of lockstep train", "all that apply"},
              [&o](const std::string& text) {
                o.algorithm = is_all(text) ? std::vector<std::string>{} : parse_list(text, parse_algorithm);
              });
  flags.toggle("--in-place", o.in_place, {"input and output share memory", "out of place"});
}

void declare_how(core::Flags& flags, Options& o) {
  flags.heading("Measurement");
  flags.number(
      "-n,--iterations,--iters N", o.iterations, 1, most_iterations,
      {"samples per row; below 10 us, and on GPUs, a sample is the mean of a block of runs", "8 to 1000 by time"});
  flags.number("-w,--warmup-iterations,--warmup_iters N", o.warmup_iterations, 0, many,
               "untimed runs before each row; the first is verified");
  flags.number("-c,--check N", o.check, 0, many,
               "verified runs per row, between the timed ones, all elements; 0: none");
  flags.choice("--buffers B", "buffer mode", o.buffers, all_buffer_modes,
               "hot: the same buffers; dirty: input rewritten before each sample; cold: not in cache");
  flags.choice("--sync Y", "synchronisation", o.sync, all_syncs,
               "barrier: before each sample; none: samples back to back");
  flags.number("--seed N", o.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
               "test data and order of algorithms");
  flags.seconds("--max-time T", o.max_time,
                {"end after T; the current size gets fewer samples: 30s, 5min, 1h", "0: no limit"});
  flags.seconds("-T,--timeout T", o.timeout, "after T without progress, name the rank that hangs and end; 0: never");
}

void declare_where(core::Flags& flags, Options& o) {
  flags.heading("Ranks and devices");
  flags.number("--nproc N", o.nproc, 1, runtime::most_processes,
               {"start N ranks on this machine with the MPI of this build", "what the launcher started"});
  flags.toggle("--verbose", o.verbose, "with --nproc: also print the launcher's messages about a failed job");
  flags.number("--expect-ranks N", o.expect_ranks, 1, many,
               {"end at once if the job does not have N ranks", "any number"});
  flags.number("--ranks-per-node K", o.ranks_per_node, 1, many,
               {"simulate nodes: every K ranks of a node are one", "real nodes"});
  flags.choice("--device D", "device", o.device.kind, runtime::all_device_kinds, runtime::device_help);
  flags.toggle("--share-gpu", o.device.shares_gpu,
               "several ranks may share a GPU, with `staged` or `mpi`: NCCL refuses that");
  flags.toggle(
      "--graph", o.graph,
      "on GPUs: record calls in a CUDA graph and replay it, so that the host launches each sample at once; NCCL "
      "rows only");
  flags.value("-R,--register,--local_register H",
              {"on GPUs: register the vectors with NCCL, for each rank (local) or as one window of all ranks "
               "(symmetric); none, local, symmetric, or 0, 1, 2 as in nccl-tests",
               "none"},
              [&o](const std::string& text) { o.registration = parse_registration(text); });
  for (const Borrowed& flag : borrowed)
    flags.value(std::string{flag.flag}, [&flag](const std::string& text) { require_fitting(flag, text); });
  flags.note(help_of_borrowed());
}

void declare_results(core::Flags& flags, Options& o) {
  flags.heading("Results");
  flags.text("-J,--json,--output_file F", o.json,
             "every row with all figures; valid if the run is killed, too (then up to a second is missing)");
  flags.text("--csv F", o.csv, "the same as CSV");
  flags.toggle("--samples", o.samples, "keep the time of every sample in the JSON file");
  flags.number("--visits N", o.visits, 0, most_visits,
               {"after the table, measure every size N times more, for comparisons", "10 with --json, --baseline"});
  flags.toggle("--verdict", o.verdict, "end with a few sentences about the result");
  flags.heading("Comparison (share/doc/lockstep/share/doc/regression.md)");
  flags.value("--baseline F[,F...]", "compare with earlier launches (JSON files); exit code 1 if this one is slower",
              [&o](const std::string& text) { o.baseline = parse_list(text, parse_path); });
  flags.value("--now F[,F...]",
              "measure nothing: compare these files with --baseline; best are five or more launches a side",
              [&o](const std::string& text) {
                o.now = parse_list(text, parse_path);
                o.task = Task::compare;
              });
  flags.value("--tolerance P", {"up to P percent longer counts as the same", "5"},
              [&o](const std::string& text) { o.tolerance = parse_percent(text); });
  flags.text("--junit F", o.junit, "the comparison as JUnit XML, a test case for each row and one for all together");
  flags.heading("Other");
  flags.action("--list", "list the algorithms with their steps and bytes", [&o] { o.task = Task::list; });
  flags.action("--demo", "the tutorials' example; exit code 1 if the sum is wrong", [&o] { o.task = Task::demo; });
  flags.value("--inject FAULT,...", "fire drill: cause the faults listed at the end", [&o](const std::string& text) {
    o.drill = std::make_shared<runtime::Drill>(runtime::parse_faults(text, runtime::FaultTaker::reduce_all));
  });
  flags.action("--version", "print the version", [&o] { o.task = Task::version; });
  flags.action("-h,--help", "print this", [&o] { o.task = Task::help; });
}

void parse(const std::vector<std::string>& arguments, CommandLine& line) {
  Options& options = line.options;
  core::Flags flags{"reduce_all [flags]"};
  declare(flags, options);
  flags.parse(arguments);
  const bool is_kept = !options.json.empty() || !options.baseline.empty();
  if (!flags.has("--visits") && is_kept) options.visits = visits_kept;
  if (options.task == Task::help || options.task == Task::version || options.task == Task::list) return;
  core::check_instruction_limit();
  check(flags, options);
  line.calls = find_calls(options);
}

}  // namespace

std::string_view name(Sync sync) noexcept { return sync == Sync::barrier ? "barrier" : "none"; }

std::string_view name(BufferMode mode) noexcept {
  switch (mode) {
    case BufferMode::hot: return "hot";
    case BufferMode::dirty: return "dirty";
    case BufferMode::cold: break;
  }
  return "cold";
}

void declare(core::Flags& flags, Options& options) {
  declare_what(flags, options);
  declare_how(flags, options);
  declare_where(flags, options);
  declare_results(flags, options);
}

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  CommandLine line;
  line.options.arguments = arguments;
  try {
    parse(arguments, line);
  } catch (const core::Error& error) {
    line.error = error;
  }
  return line;
}

}  // namespace lockstep::reduce_all
