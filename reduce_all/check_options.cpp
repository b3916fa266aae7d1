#include "reduce_all/check_options.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace lockstep::reduce_all {
namespace {

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

}  // namespace

void check(const core::Flags& flags, const Options& o) {
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
  check_sizes(o);
}

}  // namespace lockstep::reduce_all
