// The log lines of the tutorials that the recipes replace, letter for letter, so that programs that read them still
// work.
// Invariant: pure functions of numbers that are correct here, even if the tutorial's were not (share/doc/tutorials.md
// says which); every text ends with a newline or is empty.
// Used by training/run/run under --compat: rank 0 prints the lines of all ranks, in rank order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/print.hpp"
#include "core/units.hpp"
#include "training/run/observer.hpp"

namespace lockstep::training {

/// Facts that are known before the first epoch, for all events.
struct CompatRun {
  std::vector<std::string> hosts{};      ///< by rank
  std::vector<int> local_ranks{};        ///< by rank
  std::vector<std::uint64_t> batches{};  ///< samples of a full batch, by rank
  std::string data{};                    ///< the set's folder
  std::uint64_t n_train = 0;             ///< samples of the set, all ranks
  std::uint64_t n_evaluation = 0;
  std::uint64_t n_epochs = 0;
  std::uint64_t n_steps = 0;  ///< per epoch
};

/// Numbers of an epoch at its end. Epochs count from 0.
struct CompatEpoch {
  std::uint64_t epoch = 0;
  double learning_rate = 0;
  double loss = 0;                                 ///< of training, mean over the epoch's samples
  double top1_percent = 0;                         ///< of training; 0 for regression
  std::optional<double> evaluation_loss{};         ///< if there was an evaluation
  std::optional<std::uint64_t> evaluation_top1{};  ///< correct answers, out of CompatRun::n_evaluation
  core::Seconds time{};                            ///< of training, without evaluation
  std::uint64_t n_steps = 0;                       ///< fewer than CompatRun::n_steps if training ends within the epoch
  double samples_per_s = 0;
};

struct CompatEnd {
  std::vector<core::Seconds> epoch_times{};
  core::Seconds time{};          ///< of the run
  std::uint64_t peak_bytes = 0;  ///< of memory, on the rank that used most
  std::optional<std::uint64_t> evaluation_top1{};
};

/// The lines of one tutorial, by event. A null entry prints nothing.
struct CompatStyle {
  std::string_view recipe;
  std::string_view tutorial;        ///< for messages: "NCSA Delta, DistributedTraining"
  std::uint64_t step_interval = 0;  ///< on_step is due after steps 0, n, 2n, ... of an epoch; 0: never
  std::string (*on_start)(const CompatRun&) = nullptr;
  std::string (*on_epoch_begin)(const CompatRun&, std::uint64_t epoch) = nullptr;
  std::string (*on_step)(const CompatRun&, std::uint64_t epoch, std::uint64_t step, double loss) = nullptr;
  std::string (*on_epoch_end)(const CompatRun&, const CompatEpoch&) = nullptr;
  std::string (*on_saved)(std::uint64_t epoch, std::string_view path) = nullptr;
  std::string (*on_end)(const CompatRun&, const CompatEnd&) = nullptr;
};

/// One per recipe that replaces a tutorial.
[[nodiscard]] std::span<const CompatStyle> compat_styles() noexcept;
/// Null if `recipe` does not replace a tutorial.
[[nodiscard]] const CompatStyle* find_compat_style(std::string_view recipe) noexcept;
/// Throws core::Error (usage) if it does not replace a tutorial.
[[nodiscard]] const CompatStyle& require_compat_style(std::string_view recipe);

/// Prints these lines: the only ones of a run on stdout, except those of --profile and --digest. On rank 0.
class CompatLog final : public Observer {
 public:
  /// `data`: the set's folder. `printer` must outlive it.
  CompatLog(const CompatStyle& style, std::string data, core::Printer& printer);

  void started(const StartRecord& record) override;
  void epoch_begun(const Position& at) override;
  void step_agreed(const StepRecord& record) override;
  void epoch_over(const EpochRecord& record) override;
  void saved(const SaveRecord& record) override;
  void ended(const FinalRecord& record) override;

 private:
  const CompatStyle& style_;
  core::Printer& printer_;
  CompatRun run_{};
  CompatEnd end_{};
};

/// A float as Python prints it: "0.1", "1.0", "1e-05".
[[nodiscard]] std::string python_text(double value);

}  // namespace lockstep::training
