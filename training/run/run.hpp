// A run seen from outside: its folder, its output, and its other observers.
// Invariant: anything that could not be written at the end is refused before training; a run that ends early reports
// it.
// Used by the trainer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/pending.hpp"
#include "core/print.hpp"
#include "io/folder.hpp"
#include "nn/device.hpp"
#include "nn/executor.hpp"
#include "nn/graph/network.hpp"
#include "runtime/communicator.hpp"
#include "runtime/watch/watchdog.hpp"
#include "training/recipe/goal.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/directory.hpp"
#include "training/run/observer.hpp"
#include "training/run/options.hpp"

namespace lockstep::training {

struct CompatStyle;

/// What observers refer to.
struct Scene {
  Goal goal{};  ///< without steps if the run does not train
  nn::Device& device;
  const nn::Network& network;
  nn::ExecutorOptions executor_options{};
  nn::Executor& executor;
  core::Bytes checkpoint{};  ///< size of a checkpoint; nothing if none is due
};

class Run {
 public:
  /// Collective: on rank 0, claims what the run will write, unless it is a dry run. Throws core::Error (usage), the
  /// same on all ranks. All arguments except `recipe` must outlive it; `clock` times periodic messages.
  Run(const runtime::Communicator& world, const Recipe& recipe, const RunOptions& options, const core::Clock& clock);

  /// Collective: creates the observers; from now on the run is recorded. `info`: complete on rank 0. Throws
  /// core::Error, the same on all ranks, if there is no room for the run, including its weights.
  void start(const RunInfo& info, const Scene& scene, const std::optional<ResumeRecord>& resumed,
             runtime::Watchdog& watchdog);

  /// Informs all observers of this rank: tell(&Observer::evaluated, record).
  template <class... Parameters, class... Arguments>
  void tell(void (Observer::*event)(Parameters...), Arguments&&... arguments) {
    for (const auto& observer : observers_) (observer.get()->*event)(arguments...);
  }

  /// On rank 0: where weights are saved.
  [[nodiscard]] std::string weights_path() const;
  /// A user may name a link, but a file of the run's own is none.
  [[nodiscard]] core::Links links_of_weights() const noexcept {
    return options_.save_weights.empty() ? core::Links::replaced : core::Links::followed;
  }
  /// On rank 0; empty in a dry run.
  [[nodiscard]] std::string folder() const { return directory_ != nullptr ? directory_->path() : ""; }
  /// Collective: whether `checkpoint` is one in this run's folder.
  [[nodiscard]] bool has_kept(const std::string& checkpoint) const;
  /// Whether the output about a save must precede that of the next step, as with --compat.
  [[nodiscard]] bool is_in_order() const noexcept { return options_.compat; }
  /// Prints text to stdout.
  void print(std::string_view text) { printer_.print(text); }
  /// On rank 0: see RunDirectory.
  void require_place() const {
    if (directory_ != nullptr) directory_->require_place();
  }
  [[nodiscard]] bool is_place_lost() const noexcept { return directory_ != nullptr && directory_->is_place_lost(); }
  /// This rank fails alone, while others may wait for it.
  void fail(const Position& at, const std::string& reason) const;
  /// On rank 0: the error if the status or stdout could not be written.
  [[nodiscard]] const std::optional<core::Error>& complaint() const noexcept;

 private:
  void claim(const Recipe& recipe);
  void share_status(runtime::Watchdog& watchdog);
  void show(const Goal& goal);

  const runtime::Communicator& world_;
  const RunOptions& options_;
  const core::Clock& clock_;
  std::string data_;
  const CompatStyle* style_ = nullptr;          ///< under --compat, on rank 0
  core::Printer printer_{};                     ///< a full stdout is told at the end, when weights are saved
  RunDirectory* directory_ = nullptr;           ///< one of the observers of rank 0
  std::shared_ptr<const io::Folder> shared_{};  ///< rank 0's; null without one, and where it is not seen
  std::vector<std::unique_ptr<Observer>> observers_{};
};

}  // namespace lockstep::training
