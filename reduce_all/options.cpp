#include "reduce_all/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "core/flags.hpp"
#include "core/instruction_sets.hpp"
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

void declare_what(core::Flags& flags, Options& o) {
  flags.bytes("-b,--min-bytes,--minbytes", o.min_bytes);
  flags.bytes("-e,--max-bytes,--maxbytes", o.max_bytes);
  flags.value("-f,--step-factor,--stepfactor", [&o](const std::string& text) {
    o.step_factor =
        core::parse_number(text, "--step-factor", std::nextafter(1.0, 2.0), 1e9, "a factor above 1, such as 2");
  });
  flags.value("-i,--step-bytes,--stepbytes",
              [&o](const std::string& text) { o.step_bytes = core::parse_bytes(text, "--step-bytes"); });
  flags.value("-d,--dtype,--datatype", [&o](const std::string& text) { parse_dtypes(text, o); });
  flags.value("-o,--op", [&o](const std::string& text) { parse_ops(text, o); });
  flags.choice("--collective", "collective", o.collective, comm::all_collectives);
  flags.value("--algorithm", [&o](const std::string& text) {
    o.algorithm = is_all(text) ? std::vector<std::string>{} : parse_list(text, parse_algorithm);
  });
  flags.toggle("--in-place", o.in_place);
}

void declare_how(core::Flags& flags, Options& o) {
  flags.number("-n,--iterations,--iters", o.iterations, 1, most_iterations);
  flags.number("-w,--warmup-iterations,--warmup_iters", o.warmup_iterations, 0, many);
  flags.number("-c,--check", o.check, 0, many);
  flags.choice("--buffers", "buffer mode", o.buffers, all_buffer_modes);
  flags.choice("--sync", "synchronisation", o.sync, all_syncs);
  flags.number("--seed", o.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max());
  flags.seconds("--max-time", o.max_time);
  flags.seconds("-T,--timeout", o.timeout);
  flags.value("--inject", [&o](const std::string& text) {
    o.drill = std::make_shared<runtime::Drill>(runtime::parse_faults(text, runtime::FaultTaker::reduce_all));
  });
}

void declare_where(core::Flags& flags, Options& o) {
  flags.number("--nproc", o.nproc, 1, runtime::most_processes);
  flags.toggle("--verbose", o.verbose);
  flags.number("--expect-ranks", o.expect_ranks, 1, many);
  flags.number("--ranks-per-node", o.ranks_per_node, 1, many);
  flags.value("--device", [&o](const std::string& text) {
    o.device.kind = core::find_named(runtime::all_device_kinds, text, "device", "--device");
  });
  flags.toggle("--share-gpu", o.device.shares_gpu);
  flags.toggle("--graph", o.graph);
  flags.value("-R,--register,--local_register",
              [&o](const std::string& text) { o.registration = parse_registration(text); });
  for (const Borrowed& flag : borrowed)
    flags.value(std::string{flag.flag}, [&flag](const std::string& text) { require_fitting(flag, text); });
  flags.text("-J,--json,--output_file", o.json);
  flags.text("--csv", o.csv);
  flags.toggle("--samples", o.samples);
  flags.number("--visits", o.visits, 0, most_visits);
  flags.toggle("--verdict", o.verdict);
  flags.value("--baseline", [&o](const std::string& text) { o.baseline = parse_list(text, parse_path); });
  flags.value("--now", [&o](const std::string& text) {
    o.now = parse_list(text, parse_path);
    o.task = Task::compare;
  });
  flags.value("--tolerance", [&o](const std::string& text) { o.tolerance = parse_percent(text); });
  flags.text("--junit", o.junit);
  flags.action("--demo", [&o] { o.task = Task::demo; });
  flags.action("--list", [&o] { o.task = Task::list; });
  flags.action("--version", [&o] { o.task = Task::version; });
  flags.action("-h,--help", [&o] { o.task = Task::help; });
}

void refuse(bool bad, std::string what, std::string where, std::string expected, std::string fix) {
  if (bad) core::fail_usage({std::move(what), std::move(where), std::move(expected), std::move(fix)});
}

void check_sizes(const Options& o) {
  refuse(o.min_bytes.value == 0, "a size of 0 B cannot be measured", "--min-bytes", "at least one element", "use -b 8");
  refuse(o.step_bytes && o.step_bytes->value == 0, "a step of 0 B never ends", "--step-bytes", "at least one element",
         "");
  refuse(o.min_bytes > o.max_bytes,
         fmt::format("the smallest size, {}, is above the largest, {}", core::format_bytes(o.min_bytes),
                     core::format_bytes(o.max_bytes)),
         "--min-bytes, --max-bytes", "-b not above -e (64M unless given)",
         fmt::format("-e {} or more", o.min_bytes.value));
}

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code ignored;
  const auto canonical = [&ignored](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
  };
  return !one.empty() && !other.empty() && canonical(one) == canonical(other);
}

// Flags about what is measured, how, and what is reported.
constexpr std::array of_measuring{"--min-bytes", "--max-bytes",  "--step-factor", "--step-bytes", "--dtype",
                                  "--op",        "--collective", "--in-place",    "--iterations", "--warmup-iterations",
                                  "--check",     "--buffers",    "--sync",        "--seed",       "--max-time",
                                  "--json",      "--csv",        "--samples",     "--verdict",    "--inject",
                                  "--visits",    "--device",     "--share-gpu",   "--graph",      "--register"};

// The demo's call is fixed.
void check_demo(const core::Flags& flags) {
  const auto check = [&flags](const char* flag) {
    refuse(flags.has(flag), "the demo is one fixed sum, so this flag has no effect", fmt::format("--demo, {}", flag),
           "one of the two", "leave out --demo to measure");
  };
  for (const char* flag : of_measuring) check(flag);
  for (const char* flag : {"--baseline", "--now", "--tolerance", "--junit"}) check(flag);
}

void check_comparing(const core::Flags& flags) {
  const auto check = [&flags](const char* flag) {
    refuse(flags.has(flag), "--now compares files and measures nothing, so this flag has no effect",
           fmt::format("--now, {}", flag), "one of the two", "leave out --now to measure");
  };
  for (const char* flag : of_measuring) check(flag);
  for (const char* flag : {"--algorithm", "--nproc", "--ranks-per-node"}) check(flag);
}

// Each launch counts once, and unchanged.
void check_compared(const Options& o) {
  std::vector<std::string> compared = o.baseline;
  compared.insert(compared.end(), o.now.begin(), o.now.end());
  for (auto path = compared.begin(); path != compared.end(); ++path) {
    for (const std::string& written : {o.json, o.csv, o.junit})
      refuse(is_same_file(*path, written), fmt::format("'{}' would be overwritten", *path), "--baseline, --now",
             "another name for the new result", "");
    const bool is_repeated =
        std::any_of(compared.begin(), path, [&](const auto& other) { return is_same_file(*path, other); });
    refuse(is_repeated, fmt::format("'{}' is named twice", *path), "--baseline, --now", "each launch once", "");
  }
}

void check_combinations(const core::Flags& flags, const Options& o) {
  refuse(flags.has("--step-factor") && o.step_bytes.has_value(), "sizes grow either by a factor or by a step",
         "--step-factor, --step-bytes", "one of the two", "leave out -f or -i");
  refuse(flags.has("--op") && o.collective == comm::Collective::all_gather, "all_gather reduces nothing", "--op",
         "no --op with --collective all_gather", "leave out -o");
  refuse(o.samples && o.json.empty(), "--samples needs a file for the times", "--samples", "--json FILE as well",
         "add --json FILE");
  for (const char* flag : {"--now", "--tolerance", "--junit"})
    refuse(flags.has(flag) && o.baseline.empty(), "there is nothing to compare with", flag, "--baseline FILE as well",
           "add --baseline FILE");
  refuse(!o.baseline.empty() && o.visits == 0, "without visits there is nothing to compare", "--baseline, --visits",
         "at least one visit, better 10", "leave out --visits 0");
  refuse(o.json == "-" || o.csv == "-", "results cannot go to stdout, where the table is", "--json, --csv", "a file",
         "name a file");
  refuse(is_same_file(o.json, o.csv) || is_same_file(o.json, o.junit) || is_same_file(o.csv, o.junit),
         "two result files are the same", "--json, --csv, --junit", "a name for each", "");
  check_compared(o);
  refuse(o.timeout.value > 0 && o.timeout.value < 1, "a healthy rank may make no progress for less than a second",
         "--timeout", "1s or more, or 0 for never", "use --timeout 1s");
  refuse(o.device.shares_gpu && o.device.kind == runtime::DeviceKind::host,
         "ranks share only GPUs, and this run is on the host", "--share-gpu, --device", "--device cuda, or auto",
         "leave out --share-gpu");
  refuse(o.graph && o.device.kind == runtime::DeviceKind::host,
         "only calls on GPUs are recorded in a graph, and this run is on the host", "--graph, --device",
         "--device cuda, or auto", "leave out --graph");
  refuse(o.registration != comm::Registration::none && o.device.kind == runtime::DeviceKind::host,
         "only memory of GPUs is registered with NCCL, and this run is on the host", "--register, --device",
         "--device cuda, or auto", "leave out --register");
  refuse(o.graph && o.buffers == BufferMode::cold,
         "a graph replays one pair of buffers, but cold buffers change with every run", "--graph, --buffers",
         "--buffers hot or dirty", "leave out one of them");
  if (o.task == Task::demo) check_demo(flags);
  if (o.task == Task::compare) check_comparing(flags);
  const bool drills_check = o.drill && o.drill->is_of_checks();
  refuse(drills_check && o.check == 0, "this fault shows only in checked iterations, and -c 0 turns them off",
         "--inject, --check", "-c above 0", "leave out -c 0");
}

void parse(const std::vector<std::string>& arguments, CommandLine& line) {
  Options& options = line.options;
  core::Flags flags{"reduce_all [flags]"};
  declare_what(flags, options);
  declare_how(flags, options);
  declare_where(flags, options);
  flags.parse(arguments);
  const bool is_kept = !options.json.empty() || !options.baseline.empty();
  if (!flags.has("--visits") && is_kept) options.visits = visits_kept;
  if (options.task == Task::help || options.task == Task::version || options.task == Task::list) return;
  core::check_instruction_limit();
  check_combinations(flags, options);
  check_sizes(options);
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
