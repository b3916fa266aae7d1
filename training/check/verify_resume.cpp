#include "training/check/verify_resume.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/compare.hpp"
#include "checkpoint/folder.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/pending.hpp"
#include "core/print.hpp"
#include "core/table.hpp"
#include "core/timer.hpp"
#include "io/file.hpp"
#include "training/recipe/cuts.hpp"
#include "training/recipe/keys.hpp"
#include "training/recipe/resume_promise.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;

constexpr const char* verify_flag = "--verify-resume";
constexpr const char* at_the_end = "1000000000000000 samples";  // a shorter training has only its last checkpoint
constexpr std::uint64_t steps_unless_told = 100;  // if the command line gives no length: seconds, for usual steps

/// One of the trainings that are compared.
struct Version {
  std::string name{};
  std::string folder{};
  int n_ranks = 1;
  std::string device{};                                  ///< "the host", or the name of a GPU
  runtime::DeviceKind kind = runtime::DeviceKind::host;  ///< of the device
  std::uint64_t after_step = 0;                          ///< it resumes after this step; 0: it does not
  std::uint64_t n_steps = 0;                             ///< at its end
  std::uint64_t samples_seen = 0;                        ///< in these steps
  std::string weights{};                                 ///< digests
  std::string losses{};
};

/// Unwinds to verify_resume(): nothing more is started, and the reason was reported.
struct EarlyEnd {
  int exit_code;
};

std::string ranks_text(int n_ranks) { return fmt::format("{} rank{}", n_ranks, n_ranks == 1 ? "" : "s"); }

/// Whether the run's log reports a checkpoint.
bool has_saved(const std::string& folder) {
  std::ifstream log{folder + "/log.jsonl"};
  for (std::string line; std::getline(log, line);)
    if (line.find(R"("kind":"save")") != std::string::npos) return true;
  return false;
}

// What is read of run.json, and of each line of log.jsonl.
constexpr std::array device_fields{core::JsonField{"kind", core::json_text},
                                   core::JsonField{"name", core::json_text, false}};
constexpr core::JsonRule device_rule{.kind = core::JsonKind::object, .fields = device_fields};
constexpr std::array meta_fields{core::JsonField{"device", device_rule}};
constexpr core::JsonRule meta_rule{.kind = core::JsonKind::object, .fields = meta_fields};
constexpr std::array start_fields{core::JsonField{"meta", meta_rule}};
constexpr core::JsonDocument start_document{.what = "what a run was started with",
                                            .rule = {.kind = core::JsonKind::object, .fields = start_fields}};
constexpr std::array line_fields{core::JsonField{"kind", core::json_text},
                                 core::JsonField{"step", core::json_whole, false},
                                 core::JsonField{"samples_seen", core::json_whole, false}};
constexpr core::JsonDocument line_document{.what = "a record of a run",
                                           .rule = {.kind = core::JsonKind::object, .fields = line_fields}};

/// What its files and the output tell of a run that has ended.
void read_end(Version& version, const std::string& output) {
  const std::string start = version.folder + "/run.json", log_path = version.folder + "/log.jsonl";
  const auto device =
      core::parse_json<nlohmann::json>(io::read_text(start), start, start_document).at("meta").at("device");
  const bool is_host = device.at("kind") == name(runtime::DeviceKind::host);
  version.kind = is_host ? runtime::DeviceKind::host : runtime::accelerated;
  version.device = is_host ? "the host" : device.value("name", "a GPU");
  std::istringstream log{io::read_text(log_path)};
  for (std::string line; std::getline(log, line);) {
    const auto record = core::parse_json<nlohmann::json>(line, log_path, line_document);
    const std::uint64_t step = record.value("step", std::uint64_t{0});
    if (record.at("kind") == "resume") version.after_step = step;
    if (record.at("kind") != "final") continue;
    version.n_steps = step;
    version.samples_seen = record.value("samples_seen", std::uint64_t{0});
  }
  std::istringstream words{io::read_text(output)};
  for (std::string word; words >> word;) {
    if (word == "weights") words >> version.weights;
    if (word == "losses") words >> version.losses;
  }
}

/// Reports a failure in the job's own words, if it has some.
[[noreturn]] void tell_failure(const Version& version, int code, const runtime::JobOutput& output) {
  const std::string what =
      fmt::format("{} on {}: failed with exit code {}", version.name, ranks_text(version.n_ranks), code);
  const std::string told = io::read_text(output.err);
  const std::size_t error = told.find("error: ");
  if (error == std::string::npos) core::fail_system(what);
  core::log_info(what);
  core::write_in_time(STDERR_FILENO, std::string_view{told}.substr(error));
  const bool is_usage = code == core::to_int(core::ExitCode::usage);
  throw EarlyEnd{core::to_int(is_usage ? core::ExitCode::usage : core::ExitCode::system)};
}

class Verification {
 public:
  Verification(const VerifyRequest& request, runtime::JobRunner& jobs);
  /// Returns 0 or 1.
  int run();

 private:
  [[nodiscard]] Version begin(const std::string& name, int n_ranks) const;
  [[nodiscard]] std::vector<std::string> arguments(const Version& version, std::uint64_t max_steps) const;
  void train(Version& version, const std::vector<std::string>& words, const std::function<int()>& due = {});
  [[nodiscard]] Version train_whole();
  [[nodiscard]] Version interrupt(const Version& whole);
  [[nodiscard]] Version resume(const Version& from, int n_ranks);
  [[nodiscard]] bool report(const Version& whole, const std::vector<Version>& resumed);

  const VerifyRequest& request_;
  runtime::JobRunner& jobs_;
  runtime::DeviceKind device_;  ///< the requested one, then that of the first training
  bool is_shortened_;
  std::uint64_t max_steps_;  ///< 0: by the recipe
  std::string kept_in_;      ///< the folder, if results differ
  core::PendingFolder folder_;
};

/// The command line's words about the recipe, without those that each version sets itself.
std::vector<std::string> recipe_arguments(const RecipeWords& words, bool leaves_out_evaluation) {
  std::vector<std::string> arguments{"train", words.recipe};
  if (!words.numbers.empty()) arguments.push_back(words.numbers.front());  // the second one is save-every
  for (const Setting& setting : words.settings) {
    if (setting.key == "save-every" || setting.key == "max-steps") continue;
    if (setting.key == "val-split" && leaves_out_evaluation) continue;
    if (all_keys()[*find_key(setting.key)].is_boolean())
      arguments.push_back(fmt::format("--{}{}", setting.text == "true" ? "" : "no-", setting.key));
    else
      arguments.insert(arguments.end(), {fmt::format("--{}", setting.key), setting.text});
  }
  return arguments;
}

bool names_length(const ResolvedRecipe& resolved) {
  return std::ranges::any_of(std::array{"epochs", "samples", "max-steps"}, [&](const char* key) {
    const Origin& origin = resolved.origins[*find_key(key)];
    return origin.is_given && origin.level == Level::command_line;
  });
}

/// Where runs stay if they differ.
std::string place_of_runs(const RunOptions& options) {
  const std::string path = options.run_dir.empty() ? "verify-resume" : options.run_dir;
  if (fs::exists(fs::symlink_status(path)))
    core::fail_usage({.what = fmt::format("'{}' exists", path),
                      .where = "--run-dir",
                      .expected = "the name of a new folder, for runs that differ",
                      .fix = "name another place by --run-dir, or move this one away"});
  return path;
}

Verification::Verification(const VerifyRequest& request, runtime::JobRunner& jobs)
    : request_{request},
      jobs_{jobs},
      device_{request.options.device.kind},
      is_shortened_{!names_length(request.resolved)},
      max_steps_{is_shortened_ && (request.resolved.recipe.max_steps == 0 ||
                                   request.resolved.recipe.max_steps > steps_unless_told)
                     ? steps_unless_told
                     : request.resolved.recipe.max_steps},
      kept_in_{place_of_runs(request.options)},
      folder_{kept_in_, std::nullopt, "--run-dir"} {}

Version Verification::begin(const std::string& name, int n_ranks) const {
  return {.name = name, .folder = fmt::format("{}/{}-{}", folder_.path(), name, n_ranks), .n_ranks = n_ranks};
}

std::vector<std::string> Verification::arguments(const Version& version, std::uint64_t max_steps) const {
  std::vector<std::string> words = recipe_arguments(request_.words, is_shortened_);
  words.insert(words.end(), {"--nproc", std::to_string(version.n_ranks), "--run-dir", version.folder, "--timeout",
                             fmt::format("{}s", request_.timeout.value), "--digest"});
  words.insert(words.end(), {"--device", std::string{name(device_)}});
  if (request_.options.device.shares_gpu && device_ != runtime::DeviceKind::host) words.emplace_back("--share-gpu");
  if (request_.verbose) words.emplace_back("--verbose");
  if (max_steps > 0) words.insert(words.end(), {"--max-steps", std::to_string(max_steps)});
  if (is_shortened_) words.insert(words.end(), {"--val-split", ""});
  return words;
}

/// Trains until the end, or until the signal that `due` returns.
void Verification::train(Version& version, const std::vector<std::string>& words, const std::function<int()>& due) {
  const core::Stopwatch watch;
  const runtime::JobOutput output{version.folder + ".out", version.folder + ".err"};
  bool is_sent = false;
  const int code = jobs_.run(words, output, [&] {
    const int signal = !is_sent && due ? due() : 0;
    is_sent = is_sent || signal != 0;
    return signal;
  });
  if (jobs_.asked() != 0) throw EarlyEnd{128 + jobs_.asked()};
  const bool is_stopped = is_sent && (code == core::to_int(core::ExitCode::requeue) || code == 128 + SIGTERM);
  if (code == 0 || is_stopped) read_end(version, output.out);
  if (version.n_steps == 0) tell_failure(version, code, output);
  core::log_info(fmt::format("{} on {}: {} step {} in {:.1f} s, on {}", version.name, ranks_text(version.n_ranks),
                             is_stopped ? "stopped by SIGTERM after" : "ended after", version.n_steps,
                             watch.elapsed().value, version.device));
  device_ = version.kind;
}

Version Verification::train_whole() {
  Version whole = begin("uninterrupted", request_.n_ranks);
  std::vector<std::string> words = arguments(whole, max_steps_);
  words.insert(words.end(), {"--save-every", at_the_end});
  if (!request_.options.init_from.empty()) words.insert(words.end(), {"--init-from", request_.options.init_from});
  train(whole, words);
  if (whole.n_steps < 2)
    core::fail_usage({.what = fmt::format("a training of {} step{} cannot be interrupted in the middle", whole.n_steps,
                                          whole.n_steps == 1 ? "" : "s"),
                      .where = verify_flag,
                      .expected = "2 steps or more",
                      .fix = "more --epochs or --max-steps, or a smaller --batch"});
  return whole;
}

/// Interrupts by SIGTERM, once a checkpoint exists after half of the samples. If the training ends before the signal,
/// trains again for half of the steps.
Version Verification::interrupt(const Version& whole) {
  Version version = begin("interrupted", request_.n_ranks);
  const auto words_for = [&](std::uint64_t max_steps) {
    std::vector<std::string> words = arguments(version, max_steps);
    words.insert(words.end(), {"--save-every", fmt::format("{} samples", whole.samples_seen / 2)});
    if (!request_.options.init_from.empty()) words.insert(words.end(), {"--init-from", request_.options.init_from});
    return words;
  };
  train(version, words_for(max_steps_), [&] { return has_saved(version.folder) ? SIGTERM : 0; });
  if (version.n_steps < whole.n_steps) return version;
  core::log_info("training ended before the signal: it is repeated up to half of the steps");
  fs::remove_all(version.folder);
  train(version, words_for(whole.n_steps / 2));
  return version;
}

Version Verification::resume(const Version& from, int n_ranks) {
  Version version = begin("resumed", n_ranks);
  std::vector<std::string> words = arguments(version, max_steps_);
  words.insert(words.end(), {"--save-every", at_the_end, "--resume", from.folder});
  train(version, words);
  return version;
}

checkpoint::Checkpoint last_of(const Version& version) {
  const auto paths = checkpoint::find_checkpoints(version.folder);
  core::require(!paths.empty(), "a training that saves has saved at its end");
  return checkpoint::open_checkpoint(runtime::Communicator::alone(), paths.front());
}

/// Prints the table, and the first difference. Returns whether all are equal.
bool Verification::report(const Version& whole, const std::vector<Version>& resumed) {
  const core::Table table{{{.header = "training", .unit = "", .width = 13, .align = core::Align::left},
                           {.header = "ranks", .unit = "", .width = 5},
                           {.header = "after step", .unit = "", .width = 10},
                           {.header = "weights", .unit = "", .width = 16, .align = core::Align::left},
                           {.header = "losses", .unit = "", .width = 32, .align = core::Align::left},
                           {.header = "equal", .unit = "", .align = core::Align::left}}};
  const auto row = [&](const Version& version, const std::string& verdict) {
    core::print(table.row({version.name, std::to_string(version.n_ranks),
                           version.after_step == 0 ? "-" : std::to_string(version.after_step), version.weights,
                           version.losses, verdict}));
  };
  core::print(table.header());
  row(whole, "");
  const checkpoint::Checkpoint first = last_of(whole);
  std::string difference;
  std::size_t n_tensors = 0;
  for (const Version& version : resumed) {
    const checkpoint::Comparison comparison = checkpoint::compare(first, last_of(version));
    const bool is_equal =
        comparison.n_differing == 0 && version.weights == whole.weights && version.losses == whole.losses;
    row(version, is_equal ? "yes" : "no");
    n_tensors = comparison.n_equal + comparison.n_differing;
    if (is_equal || !difference.empty()) continue;
    difference =
        fmt::format("resumed on {}: {}", ranks_text(version.n_ranks),
                    comparison.first.empty() ? "its digests differ, although no tensor does" : comparison.first);
  }
  if (difference.empty())
    core::print(
        "resumed and uninterrupted runs are bit-identical: weights, losses and all {} tensors of the checkpoints\n",
        n_tensors);
  else
    core::print(difference + "\n");
  return difference.empty();
}

int Verification::run() {
  core::log_info(fmt::format(
      "verifying {} with --deterministic: {}", request_.resolved.recipe.name,
      !is_shortened_ ? "the whole training"
                     : fmt::format("at most {} steps, without evaluation (--epochs or --max-steps change the length)",
                                   max_steps_)));
  const Version whole = train_whole();
  const Version interrupted = interrupt(whole);
  std::vector<Version> resumed{resume(interrupted, request_.n_ranks)};
  Recipe recipe = request_.resolved.recipe;
  recipe.device = runtime::traits_of(whole.kind);
  const ResumePromise promise = resume_promise(recipe, request_.n_ranks);
  if (promise.same_bits == SameBits::any_ranks)
    resumed.push_back(resume(interrupted, other_ranks(recipe, request_.n_ranks)));
  else
    core::log_info(fmt::format("not resumed on another number of ranks: a resumed run is {}", promise.text));
  if (report(whole, resumed)) return core::to_int(core::ExitCode::ok);
  folder_.commit();
  core::log_info(fmt::format("the runs are kept in '{}'", kept_in_));
  return core::to_int(core::ExitCode::failed);
}

}  // namespace

void require_deterministic(RecipeWords& words) {
  const auto said = std::ranges::find(words.settings, "deterministic", &Setting::key);
  if (said == words.settings.end())
    words.settings.push_back({.key = "deterministic",
                              .text = "true",
                              .origin = {Level::command_line, fmt::format("flag {}", verify_flag), verify_flag, true}});
  else if (said->text != "true")
    core::fail_usage({.what = "runs that are not deterministic differ, even without an interruption",
                      .where = fmt::format("{}; {}", said->origin.where, verify_flag),
                      .expected = "one of the two",
                      .fix = "leave out one"});
}

int verify_resume(const VerifyRequest& request, runtime::JobRunner& jobs) {
  check_ranks(request.resolved.recipe, request.n_ranks);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves causes an error in printing
  Verification verification{request, jobs};
  try {
    return verification.run();
  } catch (const EarlyEnd& end) {
    return end.exit_code;
  } catch (const core::Error&) {
    throw;
  } catch (const std::exception& error) {
    core::fail_system(fmt::format("the runs cannot be compared: {}", error.what()));
  }
}

}  // namespace lockstep::training
