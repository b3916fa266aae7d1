// The folder of one run: run.json (what was run, on what), log.jsonl (its history), status.json (its state), and files
// that the trainer adds, such as weights.
// Invariant: a folder holds one run, which holds its lock. Files of a run appear whole (the log line by line). A run
// that is refused before start() leaves nothing behind.
// Used by training/run/run, on rank 0 only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "io/folder.hpp"
#include "runtime/environment.hpp"
#include "runtime/gpu_choice.hpp"
#include "runtime/topology.hpp"
#include "training/recipe/resume_promise.hpp"
#include "training/run/lock.hpp"
#include "training/run/observer.hpp"

namespace lockstep::training {

/// The content of run.json (share/schemas/train_run-1.schema.json).
struct RunInfo {
  std::vector<std::string> arguments{};  ///< of the program
  std::string recipe_name{};
  std::string recipe_json{};  ///< the effective recipe: the text of a JSON object
  std::string set_digest{};   ///< of the manifest; empty if samples are synthetic
  std::string strategy{};
  std::string why_strategy{};           ///< empty if the recipe names it
  std::optional<UseRecord> forecast{};  ///< nothing if the run only evaluates
  std::optional<UseRecord> measured{};  ///< once it has ended
  ResumePromise resume{};
  runtime::Environment environment{};
  runtime::Topology topology{};
  runtime::DeviceChoice device{};
  std::vector<std::pair<std::string, std::string>>
      libraries{};  ///< names and versions of libraries that compute, read and write
  std::vector<std::string> warnings{};
  std::vector<std::string> faults{};  ///< injected ones, including those before a resume
};

[[nodiscard]] std::string to_document(const RunInfo& info);

class RunDirectory final : public Observer {
 public:
  /// Claims `path`, and creates it if it does not exist; if `path` is empty, creates `runs/<recipe>-<date>-<n>` in the
  /// current folder. Throws core::Error (usage, naming --run-dir) if it holds another run (unless that `may_go_on` and
  /// is not active), or a set of shards, or is not writable. Throws, naming --inject, if it holds a run without faults
  /// and this one `is_drill`. `clock` must outlive it.
  RunDirectory(const std::string& path, const std::string& recipe_name, bool may_go_on = false, bool is_drill = false,
               const core::Clock& clock = core::real_clock());
  /// If the run was started and neither finished nor failed, sets its state to `failed`.
  ~RunDirectory() override;
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The path of a file in it.
  [[nodiscard]] std::string file(std::string_view name) const;

  /// Called when training begins: writes run.json (core::Error (system) if that fails), the log's first line and the
  /// first status. `resumed`: the checkpoint from which it resumes. At the end run.json also gets what was measured.
  void start(const RunInfo& info, const std::optional<ResumeRecord>& resumed = {});

  // A full disk gives one warning, because a run is worth more than its log. The status is then overwritten in place.
  void went_back(const ResumeRecord& record) override;
  void interval_over(const TrainRecord& record) override;
  void evaluated(const EvaluationRecord& record) override;
  void saved(const SaveRecord& record) override;
  void ended(const FinalRecord& record) override;

  /// Renews a status that is older than readers expect of a live run; only the position has changed.
  void working(const Position& at) override;
  /// Throws core::Error (system) if the folder was renamed or removed. Then nothing of the run is written any more,
  /// because the name may now belong to another run; only a status that still is this run's becomes `failed`. Also
  /// throws if another folder is in place of that of the checkpoints.
  void require_place();
  /// Whether require_place(), or writing the status, found that the folder was renamed or removed.
  [[nodiscard]] bool is_place_lost() const noexcept { return is_place_lost_; }
  /// The error to report at the end if the status is wrong; nothing if it is right.
  [[nodiscard]] const std::optional<core::Error>& complaint() const noexcept { return complaint_; }
  /// Ends the run without a final line in its log. A finished run stays unchanged.
  void fail(const Position& at, const std::string& reason);

 private:
  void claim(const std::string& path);
  void look_for_run();
  [[nodiscard]] core::Descriptor open_log() const;
  void claim_fresh(const std::string& recipe_name);
  void make_folders(const std::string& path);
  void append(const std::string& line);
  void write_info();
  void keep_measured(const FinalRecord& record);
  void require_lock();
  [[nodiscard]] bool has_own_checkpoints();
  void replace_status();
  void abandon() noexcept;

  std::string path_{};
  std::vector<std::string> made_{};  ///< folders, outermost first
  RunLock lock_{};
  std::optional<io::Folder> folder_{};       ///< of `path_`, once it has the lock
  std::optional<io::Folder> checkpoints_{};  ///< since the run began, or made it
  core::Descriptor log_{};
  RunInfo info_{};  ///< of run.json
  Status status_{};
  core::Timer since_status_;
  bool may_go_on_ = false;
  std::vector<std::string> faults_before_{};
  bool was_there_ = false;
  bool is_log_new_ = false;
  bool is_started_ = false;
  bool is_finished_ = false;
  bool is_place_lost_ = false;
  bool has_warned_ = false;
  std::optional<core::Error> complaint_{};
};

}  // namespace lockstep::training
