#include "reduce_all/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "comm/registry.hpp"
#include "core/suggest.hpp"
#include "reduce_all/sizes.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr int many = std::numeric_limits<int>::max();
constexpr int most_samples = 10'000'000;  // of a row, kept by every rank
constexpr int most_processes = 4096;      // to start on one machine: more is a slip of the finger

template <class Number>
Number parse_number(const std::string& text, std::string_view flag, Number least, Number most,
                    std::string_view expected) {
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = status != std::errc::invalid_argument && end == text.data() + text.size();
  if (is_number && status == std::errc{} && value >= least && value <= most) return value;
  core::fail_usage(
      {.what = is_number ? fmt::format("{} is out of range", text) : fmt::format("'{}' is not a number", text),
       .where = std::string{flag},
       .expected = std::string{expected},
       .fix = ""});
}

[[noreturn]] void fail_unknown(std::string_view kind, const std::string& word, std::string_view flag,
                               const std::vector<std::string>& candidates) {
  const auto near = core::near_miss(word, candidates);
  core::fail_usage({.what = fmt::format("unknown {} '{}'", kind, word),
                    .where = std::string{flag},
                    .expected = "one of " + core::join(candidates),
                    .fix = near ? fmt::format("did you mean '{}'?", *near) : ""});
}

template <class Range>
std::vector<std::string> names_of(const Range& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.emplace_back(name(value));
  return names;
}

// The value called `word`, by its enumerator's name.
template <class Range>
auto parse_enum(const std::string& word, std::string_view kind, std::string_view flag, const Range& values) {
  for (const auto value : values) {
    if (name(value) == word) return value;
  }
  fail_unknown(kind, word, flag, names_of(values));
}

// "a,b" as {"a", "b"}; empty words stay, to be refused by the parser of the word.
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  for (std::size_t comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = text.find(',', begin);
    words.push_back(text.substr(begin, comma == std::string::npos ? comma : comma - begin));
  }
  return words;
}

// Every distinct value of a comma list, in the order given.
template <class ParseWord>
auto parse_list(const std::string& text, ParseWord parse_word) {
  std::vector<decltype(parse_word(text))> values;
  for (const std::string& word : split_list(text)) {
    auto value = parse_word(word);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
  }
  return values;
}

// "all", or a list with it.
bool is_all(const std::string& text) {
  const std::vector<std::string> words = split_list(text);
  return std::find(words.begin(), words.end(), "all") != words.end();
}

core::DType parse_dtype(const std::string& word) {
  if (const auto dtype = core::find_dtype(word)) return *dtype;
  std::vector<std::string> names;
  for (const core::DType dtype : core::all_dtypes) names.emplace_back(core::name(dtype));
  fail_unknown("dtype", word, "--dtype", names);
}

std::string parse_algorithm(const std::string& word) {
  if (comm::find_algorithm(word) != nullptr) return word;
  std::vector<std::string> names;
  for (const comm::Algorithm& algorithm : comm::algorithms()) names.emplace_back(algorithm.name);
  names.emplace_back("all");
  fail_unknown("algorithm", word, "--algorithm", names);
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
    options.op =
        parse_list(text, [](const std::string& word) { return parse_enum(word, "op", "--op", comm::all_reduce_ops); });
}

// nccl-tests' counts of what a process holds several of; a rank here is one process with one buffer.
void require_one(const std::string& text, std::string_view flag) {
  if (text == "1") return;
  core::fail_usage({.what = fmt::format("'{}' is not supported", text),
                    .where = std::string{flag},
                    .expected = "1: every rank is a process of its own",
                    .fix = "start more ranks with the launcher, or with --nproc N"});
}

// Binds `flags` to `action`, which may throw core::Error.
template <class Action>
void on_value(CLI::App& app, const char* flags, Action action) {
  app.add_option_function<std::string>(flags, action);
}

void add_what(CLI::App& app, Options& o) {
  on_value(app, "-b,--min-bytes", [&o](const std::string& t) { o.min_bytes = core::parse_bytes(t, "--min-bytes"); });
  on_value(app, "-e,--max-bytes", [&o](const std::string& t) { o.max_bytes = core::parse_bytes(t, "--max-bytes"); });
  on_value(app, "-f,--step-factor", [&o](const std::string& t) {
    o.step_factor =
        parse_number<double>(t, "--step-factor", std::nextafter(1.0, 2.0), 1e9, "a factor above 1, such as 2");
  });
  on_value(app, "-i,--step-bytes", [&o](const std::string& t) { o.step_bytes = core::parse_bytes(t, "--step-bytes"); });
  on_value(app, "-d,--dtype", [&o](const std::string& t) { parse_dtypes(t, o); });
  on_value(app, "-o,--op", [&o](const std::string& t) { parse_ops(t, o); });
  on_value(app, "--collective", [&o](const std::string& t) {
    o.collective = parse_enum(t, "collective", "--collective", comm::all_collectives);
  });
  on_value(app, "--algorithm", [&o](const std::string& t) {
    o.algorithm = is_all(t) ? std::vector<std::string>{} : parse_list(t, parse_algorithm);
  });
  app.add_flag("--in-place", o.in_place);
}

void add_how(CLI::App& app, Options& o) {
  on_value(app, "-n,--iterations", [&o](const std::string& t) {
    o.iterations = parse_number(t, "--iterations", 1, most_samples, "a number from 1 to 10000000");
  });
  on_value(app, "-w,--warmup-iterations", [&o](const std::string& t) {
    o.warmup_iterations = parse_number(t, "--warmup-iterations", 0, many, "a number from 0 to 2147483647");
  });
  on_value(app, "-c,--check", [&o](const std::string& t) {
    o.check = parse_number(t, "--check", 0, many,
                           "a number of checked iterations, up to 2147483647; 0 switches checking off");
  });
  on_value(app, "--buffers", [&o](const std::string& t) {
    o.buffers =
        parse_enum(t, "buffer mode", "--buffers", std::array{BufferMode::hot, BufferMode::dirty, BufferMode::cold});
  });
  on_value(app, "--sync", [&o](const std::string& t) {
    o.sync = parse_enum(t, "synchronisation", "--sync", std::array{Sync::barrier, Sync::none});
  });
  on_value(app, "--seed", [&o](const std::string& t) {
    o.seed =
        parse_number<std::uint64_t>(t, "--seed", 0, std::numeric_limits<std::uint64_t>::max(), "a number below 2^64");
  });
  on_value(app, "--max-time", [&o](const std::string& t) { o.max_time = core::parse_seconds(t, "--max-time"); });
  on_value(app, "--timeout", [&o](const std::string& t) { o.timeout = core::parse_seconds(t, "--timeout"); });
  on_value(app, "--inject", [&o](const std::string& t) { o.inject = parse_injection(t); });
}

void add_where(CLI::App& app, Options& o) {
  on_value(app, "--nproc", [&o](const std::string& t) {
    o.nproc = parse_number(t, "--nproc", 1, most_processes, "a number of ranks to start, up to 4096");
  });
  on_value(app, "--expect-ranks", [&o](const std::string& t) {
    o.expect_ranks = parse_number(t, "--expect-ranks", 1, many, "the number of ranks the job should have");
  });
  on_value(app, "--ranks-per-node", [&o](const std::string& t) {
    o.ranks_per_node = parse_number(t, "--ranks-per-node", 1, many, "how many ranks make up a simulated node");
  });
  on_value(app, "-g,--ngpus", [](const std::string& t) { require_one(t, "--ngpus"); });
  on_value(app, "-t,--nthreads", [](const std::string& t) { require_one(t, "--nthreads"); });
  app.add_option("--json", o.json);
  app.add_option("--csv", o.csv);
  app.add_flag("--samples", o.samples);
  app.add_flag("--verdict", o.verdict);
  app.add_flag_callback("--demo", [&o] { o.task = Task::demo; });
  app.add_flag_callback("--list", [&o] { o.task = Task::list; });
  app.add_flag_callback("--version", [&o] { o.task = Task::version; });
  app.add_flag_callback("-h,--help", [&o] { o.task = Task::help; });
}

// Every spelling the parser knows, for near misses.
std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& word : option->get_lnames()) flags.push_back("--" + word);
    for (const std::string& letter : option->get_snames()) flags.push_back("-" + letter);
  }
  return flags;
}

std::string_view without_dashes(std::string_view flag) {
  return flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
}

// The flag that `word` is likely to mean. Dashes are no letters to go by: `-x` is not nearly `-b`.
std::optional<std::string> near_flag(const CLI::App& app, std::string_view word) {
  const std::vector<std::string> flags = flags_of(app);
  std::vector<std::string> bare;
  for (const std::string& flag : flags) bare.emplace_back(without_dashes(flag));
  const auto near = core::near_miss(without_dashes(word), bare);
  if (!near) return std::nullopt;
  return flags[static_cast<std::size_t>(std::find(bare.begin(), bare.end(), *near) - bare.begin())];
}

void refuse_unknown(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return;
  const bool is_flag = extras.front().starts_with('-');
  const std::string word = extras.front().substr(0, extras.front().find('='));
  const auto near = is_flag ? near_flag(app, word) : std::nullopt;
  core::fail_usage(
      {.what = fmt::format("{} '{}'", is_flag ? "unknown flag" : "unexpected argument", word),
       .where = "",
       .expected = "",
       .fix = near ? fmt::format("did you mean '{}'? --help lists all", *near) : "--help lists all flags"});
}

void refuse(bool bad, std::string what, std::string where, std::string expected, std::string fix) {
  if (bad) core::fail_usage({std::move(what), std::move(where), std::move(expected), std::move(fix)});
}

void check_sizes(const Options& o) {
  refuse(o.min_bytes.value == 0, "0 B is no size to measure", "--min-bytes", "at least one element", "use -b 8");
  refuse(o.step_bytes && o.step_bytes->value == 0, "a step of 0 B never ends", "--step-bytes", "at least one element",
         "");
  refuse(o.min_bytes > o.max_bytes,
         fmt::format("the smallest size, {}, is above the largest, {}", core::format_bytes(o.min_bytes),
                     core::format_bytes(o.max_bytes)),
         "--min-bytes, --max-bytes", "-b not above -e (64M unless given)", fmt::format("add -e {}", o.min_bytes.value));
  for (const core::DType dtype : o.dtype) static_cast<void>(sizes(o, dtype));  // throws for a size it cannot do
}

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code ignored;
  const auto canonical = [&ignored](const std::string& path) {
    return std::filesystem::weakly_canonical(path, ignored);
  };
  return !one.empty() && !other.empty() && canonical(one) == canonical(other);
}

void check_combinations(const CLI::App& app, const Options& o) {
  refuse(app.count("--step-factor") > 0 && o.step_bytes.has_value(), "sizes cannot grow by a factor and by a step",
         "--step-factor, --step-bytes", "one of the two", "leave out -f or -i");
  refuse(app.count("--op") > 0 && o.collective == comm::Collective::all_gather, "all_gather reduces nothing", "--op",
         "no --op with --collective all_gather", "leave out -o");
  refuse(o.samples && o.json.empty(), "--samples needs a file to keep the times in", "--samples",
         "--json FILE beside it", "add --json FILE");
  refuse(o.json == "-" || o.csv == "-", "results go to files, not to stdout, where the table is", "--json, --csv",
         "a file", "name a file");
  refuse(is_same_file(o.json, o.csv), "two result files are the same", "--json, --csv", "two names", "");
  refuse((app.count("--json") > 0 && o.json.empty()) || (app.count("--csv") > 0 && o.csv.empty()),
         "a result file needs a name", "--json, --csv", "a path", "");
  refuse(o.task == Task::demo && (!o.json.empty() || !o.csv.empty()), "the demo writes no result files", "--demo",
         "no --json or --csv beside it", "leave out --demo to measure");
  const bool drills_check = o.inject && o.inject->phase == runtime::Phase::verification;
  refuse(drills_check && o.check == 0, "this fault shows in checked iterations only, and none are asked for",
         "--inject, --check", "-c above 0", "leave out -c 0");
}

// The parser's "--min-bytes: 1 required TEXT missing" for a reader; other messages as they are.
std::string reword(const std::string& message) {
  if (!message.ends_with(" required TEXT missing")) return message;
  return fmt::format("{} needs a value", message.substr(0, message.find(':')));
}

void parse(const std::vector<std::string>& arguments, Options& options) {
  CLI::App app{"reduce_all"};
  app.set_help_flag();
  app.allow_extras();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_what(app, options);
  add_how(app, options);
  add_where(app, options);
  std::vector<std::string> reversed{arguments.rbegin(), arguments.rend()};  // as CLI11 takes a vector
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    core::fail_usage(
        {.what = reword(error.what()), .where = "", .expected = "", .fix = "--help lists all flags with their values"});
  }
  refuse_unknown(app);
  if (options.task != Task::measure && options.task != Task::demo) return;
  check_combinations(app, options);
  check_sizes(options);
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
    parse(arguments, line.options);
  } catch (const core::Error& error) {
    line.error = error;
  }
  return line;
}

}  // namespace lockstep::reduce_all
