#include "training/run/directory.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/pending.hpp"
#include "core/result_path.hpp"
#include "core/temporary.hpp"
#include "metrics/fingerprint.hpp"
#include "runtime/watch/testimony.hpp"
#include "training/run/folder_refusals.hpp"
#include "training/run/status.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;  // keys in the order written here

constexpr const char* run_name = "run.json";
constexpr const char* log_name = "log.jsonl";

std::tm utc_now() { return fmt::gmtime(std::time(nullptr)); }

constexpr core::JsonRule faults_rule{.kind = core::JsonKind::list, .each = &core::json_text};
constexpr std::array run_fields{core::JsonField{"faults", faults_rule, false}};
constexpr core::JsonDocument run_document{.what = "what a run was started with",
                                          .rule = {.kind = core::JsonKind::object, .fields = run_fields}};

/// Returns the faults of the existing run; none if its file cannot be read.
std::vector<std::string> faults_in(const io::Folder& folder) noexcept try {
  constexpr core::Bytes most{std::uint64_t{16} << 20};
  const std::string text = io::read_text(folder.open(run_name), most);
  return core::parse_json<Json>(text, folder.path_of(run_name), run_document)
      .value("faults", std::vector<std::string>{});
} catch (const std::exception&) {
  return {};
}

constexpr core::Seconds longest_silence{5};  // of status.json, while there is something to report

/// Or ends in nothing; a run that was killed may have left half a line.
bool ends_in_a_line(const core::Descriptor& log) {
  struct stat status {};
  char last = '\n';
  if (fstat(log.get(), &status) == 0 && status.st_size > 0)
    static_cast<void>(!pread(log.get(), &last, 1, status.st_size - 1));
  return last == '\n';
}

}  // namespace

std::string to_document(const RunInfo& info) {
  Json libraries = Json::object();
  for (const auto& [library, version] : info.libraries) libraries[library] = version;
  Json meta{{"started", info.environment.time},
            {"arguments", info.arguments},
            {"warnings", info.warnings},
            {"libraries", libraries}};
  meta.update(metrics::to_json(info.device));
  meta.update(metrics::to_json(info.topology));
  meta.update(metrics::to_json(info.environment));
  Json json{
      {"schema", "lockstep.train_run"},
      {"schema_version", 1},
      {"recipe_name", info.recipe_name},
      {"recipe", Json::parse(info.recipe_json)},
      {"set_digest", info.set_digest.empty() ? Json{} : Json(info.set_digest)},
      {"strategy", {{"name", info.strategy}, {"why", info.why_strategy.empty() ? Json{} : Json(info.why_strategy)}}},
      {"forecast", Json::parse(use_json(info.forecast))},
      {"measured", Json::parse(use_json(info.measured))},
      {"resume", {{"same_bits", name(info.resume.same_bits)}, {"promise", info.resume.text}}},
      {"meta", meta}};
  if (!info.faults.empty()) json["faults"] = info.faults;
  return metrics::dump(json, 2) + "\n";
}

RunDirectory::RunDirectory(const std::string& path, const std::string& recipe_name, bool may_go_on, bool is_drill,
                           const core::Clock& clock)
    : since_status_{clock}, may_go_on_{may_go_on} {
  try {
    if (!path.empty() && !core::is_shard_set(path)) core::refuse_in_shard_set(path, run_dir_flag);
    if (path.empty())
      claim_fresh(recipe_name);
    else
      claim(path);
    faults_before_ = faults_in(*folder_);
    if (is_drill && was_there_ && faults_before_.empty()) refuse_drill(path_);
  } catch (...) {
    abandon();
    throw;
  }
}

RunDirectory::~RunDirectory() {
  if (!is_started_) {
    abandon();
  } else {
    fail(status_.at, "the program ended early");
  }
}

std::string RunDirectory::file(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

void RunDirectory::make_folders(const std::string& path) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path part = path; !part.empty() && !fs::exists(part, error); part = part.parent_path())
    if (part.has_filename()) missing.push_back(part);
  for (auto part = missing.rbegin(); part != missing.rend(); ++part) {
    if (mkdir(part->c_str(), 0777) == 0)
      made_.push_back(part->string());
    else if (errno != EEXIST)
      refuse_place(path, errno);
  }
}

/// If two jobs want one folder, the one that gets its lock wins; if files cannot be locked, the one that creates the
/// folder.
void RunDirectory::claim(const std::string& path) {
  path_ = path;
  for (int n_left = 10; n_left > 0; --n_left) {
    make_folders(path);
    if (core::is_shard_set(path)) refuse_shard_set(path);
    look_for_run();
    lock_ = take_run_lock(path);
    if (lock_.error != ENOENT) break;  // otherwise another run has given up and removed the folder
  }
  if (lock_.error == EWOULDBLOCK) refuse_run_under_way(path, lock_.holder);
  if (lock_.error == EEXIST || lock_.error == ELOOP || lock_.error == EISDIR) refuse_lock(lock_);
  if (lock_.error != 0) refuse_place(path, lock_.error);
  if (!lock_.has_locks && !lock_.is_new && !may_go_on_) refuse_other_run(path);
  look_for_run();  // one may have begun and ended since
  folder_.emplace(path);
  is_log_new_ = !folder_->has(log_name);
  log_ = open_log();
}

/// Throws core::Error (usage) if there is a run that this one must not resume, or if one of the run's names is foreign.
void RunDirectory::look_for_run() {
  refuse_foreign_names(path_);
  if (holds_run(path_)) was_there_ = true;
  if (was_there_ && !may_go_on_) refuse_other_run(path_);
}

/// An empty log was left by a run that was killed during its start.
core::Descriptor RunDirectory::open_log() const {
  constexpr int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  core::Descriptor log{::openat(folder_->descriptor(), log_name, flags, 0666)};
  if (!log) refuse_place(path_, errno);
  return log;
}

void RunDirectory::claim_fresh(const std::string& recipe_name) {
  make_folders("runs");
  const std::string stem = fmt::format("runs/{}-{:%Y-%m-%d}", fs::path{recipe_name}.stem().string(), utc_now());
  for (int n = 1;; ++n) {
    const std::string path = fmt::format("{}-{}", stem, n);
    if (mkdir(path.c_str(), 0777) == 0) {
      made_.push_back(path);
      return claim(path);
    }
    if (errno != EEXIST) refuse_place(path, errno);
  }
}

void RunDirectory::start(const RunInfo& info, const std::optional<ResumeRecord>& resumed) {
  if (resumed) {
    status_.at = resumed->at;
    status_.checkpoint = resumed->from;
  }
  require_place();
  core::remove_leftovers(path_, "");
  runtime::forget_testimonies(path_);
  info_ = info;
  info_.faults.insert(info_.faults.begin(), faults_before_.begin(), faults_before_.end());
  write_info();
  sign(lock_);  // processes of a run that was killed may have told its failure since this one has the lock
  try {
    write_status(*folder_, status_);
  } catch (...) {
    if (!was_there_) ::unlinkat(folder_->descriptor(), run_name, 0);
    throw;
  }
  is_started_ = true;
  append((ends_in_a_line(log_) ? "" : "\n") + first_line(info.environment.time));
  if (resumed) append(to_line(*resumed));
}

void RunDirectory::write_info() {
  const std::string document = to_document(info_);
  core::write_whole_below(folder_->descriptor(), folder_->path_of(run_name), std::as_bytes(std::span{document}));
}

/// Without room, the log has it, or has told.
void RunDirectory::keep_measured(const FinalRecord& record) {
  if (!record.measured || complaint_) return;
  info_.measured = record.measured;
  static_cast<void>(core::complaint_of([&] { write_info(); }));
}

void RunDirectory::went_back(const ResumeRecord& record) {
  append(to_line(record));
  status_.at = record.at;
  status_.checkpoint = record.from;
  replace_status();
}

void RunDirectory::interval_over(const TrainRecord& record) {
  append(to_line(record));
  status_.at = record.at;
  status_.loss = record.loss;
  status_.eta = record.eta;
  replace_status();
}

void RunDirectory::evaluated(const EvaluationRecord& record) {
  append(to_line(record));
  status_.at = record.at;
  replace_status();
}

void RunDirectory::saved(const SaveRecord& record) {
  append(to_line(record));
  status_.checkpoint = record.path;
  if (record.at.step > status_.at.step) status_.at = record.at;
  static_cast<void>(has_own_checkpoints());  // which the first one has made
  replace_status();
}

void RunDirectory::ended(const FinalRecord& record) {
  if (record.profile) append(to_line(*record.profile));
  append(to_line(record));
  status_ = {.state = record.state,
             .message = record.message,
             .at = record.at,
             .loss = record.loss,
             .checkpoint = status_.checkpoint};
  replace_status();
  keep_measured(record);
  is_finished_ = true;
}

void RunDirectory::working(const Position& at) {
  if (since_status_.elapsed().value <= longest_silence.value) return;
  status_.at = at;
  replace_status();
}

void RunDirectory::fail(const Position& at, const std::string& reason) {
  if (is_finished_) return;
  status_ = {.state = RunStatus::failed,
             .message = message_of(reason),
             .at = at,
             .loss = status_.loss,
             .checkpoint = status_.checkpoint};
  replace_status();
  is_finished_ = true;
}

/// A line that does not fit is truncated, so that the next one begins a line.
void RunDirectory::append(const std::string& line) {
  const std::string text = line + "\n";
  struct stat before {};
  if (fstat(log_.get(), &before) == 0) {
    const ssize_t n = ::write(log_.get(), text.data(), text.size());
    if (n == static_cast<ssize_t>(text.size())) return;
    if (n >= 0) errno = ENOSPC;
  }
  const std::string reason = core::system_reason(errno);
  if (ftruncate(log_.get(), before.st_size) != 0 || !has_warned_)
    core::log_warning(fmt::format("'{}' lacks all lines from now on: {}", file(log_name), reason));
  has_warned_ = true;
}

void RunDirectory::require_lock() {
  is_place_lost_ = is_place_lost_ || !is_in_place(lock_);
  if (is_place_lost_) fail_for_lost_place(path_);
}

void RunDirectory::require_place() {
  require_lock();
  if (!has_own_checkpoints()) fail_for_other_checkpoints(file("checkpoints"));
}

// A user may have put a link there before the run, but the run itself makes none. If the folder is removed, the run
// makes it again.
bool RunDirectory::has_own_checkpoints() {
  const std::string path = file("checkpoints");
  std::error_code error;
  const bool is_there = fs::is_directory(path, error);
  if (is_there && checkpoints_) return checkpoints_->is_in_place();
  checkpoints_.reset();
  if (is_started_ && fs::is_symlink(fs::symlink_status(path, error))) return false;
  if (is_there) static_cast<void>(core::complaint_of([&] { checkpoints_.emplace(path); }));
  return true;
}

void RunDirectory::replace_status() {
  since_status_.restart();
  complaint_ = core::complaint_of([&] { require_lock(); });
  if (complaint_) {
    if (status_.state != RunStatus::running && !is_of_another(lock_, folder_->descriptor()))
      mark_failed(*folder_, complaint_->problem().what);
    return;
  }
  const bool is_no_cause = status_.state == RunStatus::running || status_.state == RunStatus::stopped;
  if (is_no_cause && was_ended_by_others(*folder_)) return;
  complaint_ = core::complaint_of([&] { write_status(*folder_, status_); });
  if (!complaint_) return;
  core::Problem problem = complaint_->problem();
  problem.what =
      fmt::format("'{}' does not record that the run is {}: {}", file(status_name), name(status_.state), problem.what);
  complaint_ = core::Error{core::ExitCode::system, std::move(problem)};
}

void RunDirectory::abandon() noexcept {
  if (log_ && (is_log_new_ || !was_there_) && is_in_place(lock_)) ::unlinkat(folder_->descriptor(), log_name, 0);
  remove_run_lock(lock_);
  if (was_there_) return;
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) ::rmdir(folder->c_str());
}

}  // namespace lockstep::training
