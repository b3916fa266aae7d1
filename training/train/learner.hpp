// The network, its parameters and their updates: one rank's part of data-parallel training.
// Invariant: between two calls of step() all ranks have the same parameters. The division of a batch among ranks,
// lanes and parts changes only the order of sums, and with `deterministic` not even that.
// Used by the trainer and by evaluate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/reader.hpp"
#include "checkpoint/weights.hpp"
#include "checkpoint/writer.hpp"
#include "comm/transport.hpp"
#include "core/pending.hpp"
#include "core/units.hpp"
#include "metrics/phase_timers.hpp"
#include "nn/device.hpp"
#include "nn/executor.hpp"
#include "nn/graph/network.hpp"
#include "parallel/control_word.hpp"
#include "parallel/group_sum.hpp"
#include "parallel/lanes.hpp"
#include "parallel/synchronizer.hpp"
#include "runtime/communicator.hpp"
#include "runtime/device.hpp"
#include "runtime/fault.hpp"
#include "training/recipe/recipe.hpp"
#include "training/train/batches.hpp"
#include "training/train/model.hpp"
#include "training/train/recordings.hpp"
#include "training/train/running_statistics.hpp"
#include "training/train/state.hpp"

namespace lockstep::training {

/// A step's place in training.
struct StepPlace {
  double learning_rate = 0;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;  ///< of the run, counting from 0
};

class Learner final : private nn::Hooks {
 public:
  /// Collective. `most`: the greatest number of samples of a batch on this rank. All references must outlive it.
  /// `on_progress`: called after each layer of each pass. `devices`: as for parallel::make_synchronizer().
  Learner(const runtime::Communicator& world, comm::Transport& transport, comm::DeviceGroup* devices,
          nn::Device& device, const Recipe& recipe, nn::Network network, std::uint64_t most,
          metrics::PhaseTimers& timers, std::function<void()> on_progress = {});

  /// Collective: initializes the parameters from the seed, or loads those of a file, a checkpoint or a run, as
  /// checkpoint::load_weights().
  void initialize(const std::string& weights_from);

  /// Collective, also for ranks without samples: passes all of `batch` forward and backward, sums the gradients of all
  /// ranks and updates the parameters, or enqueues all that on a device. The gradient is that of the mean over the
  /// global batch. Returns the report of the step before, unless it was already given. Nothing waits for that step: the
  /// host ends it before this one begins, and a device is busy with this one.
  parallel::StepReport step(const data::Batch& batch, const StepPlace& at);
  /// The report of the last step, unless it was already given: sums, and whether they are finite.
  [[nodiscard]] parallel::StepReport report_last();
  /// Collective: only this rank's gradients, for --replay; report_last() has their loss.
  void compute_gradients(const data::Batch& batch, const StepPlace& at);

  /// Collective, also for ranks without samples: evaluates a batch of data::Deal::ranges with running statistics,
  /// without dropout; sums() has the results. All ranks make as many passes as the one with the most samples.
  void evaluate(const data::Batch& batch);
  /// Sums over everything evaluated since the last call.
  [[nodiscard]] nn::LossSums sums() { return executor_->sums(); }
  /// For evaluate(), save() and digest() their mean is used, for training each rank's own.
  [[nodiscard]] RunningStatistics& statistics() noexcept { return *statistics_; }
  /// Collective: passes one sample through the network, forward and backward, so that everything made on first use
  /// exists. Ranks without samples pass none.
  void try_out(const data::Batch& one);

  /// Sets the drill that is told of writes of checkpoints; null without one.
  void set_drill(runtime::Drill* drill) noexcept { drill_ = drill; }
  /// Local: throws core::Error (usage) unless the parameter exists and this rank owns a part of it.
  void require_parameter(const std::string& name);
  /// Local: flips a bit of this rank's part, between two steps.
  void flip_bit(const std::string& name);

  /// Collective: throws core::Error (failed), the same on all ranks, unless all parameters are finite. Each rank
  /// looks at those that it owns.
  void require_finite();
  /// Collective: on rank 0 a file of weights, which is whole or not there; the arguments are rank 0's. Throws on the
  /// ranks where something failed; no rank waits for one that has.
  void save(const std::string& path, const checkpoint::WeightsInfo& info, std::string_view flag,
            core::Links links = core::Links::followed) const;
  /// Collective: parameters, the optimizer's states and running statistics, of each lane if there are lanes. `path` and
  /// `content`, on rank 0: as for write_checkpoint().
  void save_checkpoint(const std::string& path, const std::string& content);
  /// Collective: the same in the background, like BackgroundSave; one at a time. Also throws like require_finite().
  [[nodiscard]] std::unique_ptr<checkpoint::BackgroundSave> begin_checkpoint(const std::string& path,
                                                                             const std::string& content);
  /// Collective: loads all of that, on any number of ranks; `at` is the position of the run. Throws core::Error, the
  /// same on all ranks, if network or optimizer differ.
  void load_checkpoint(const checkpoint::Checkpoint& from, const RunState& at);
  /// Collective: the minimum of ReplicaGuard::n_sound_steps() over all ranks.
  [[nodiscard]] std::uint64_t least_sound_steps() const;
  /// Collective: on rank 0 the hash of all parameters and running statistics, one tensor after another, that
  /// core/sum_hash.hpp defines; elsewhere nothing. Each rank hashes the parameters that it owns. Throws the same on all
  /// ranks.
  [[nodiscard]] std::string digest() const;

  /// The first place on this rank where something was not finite.
  struct NotFinite {
    std::uint64_t step = 0;  ///< of the run, counting from 0
    std::string where{};     ///< a layer of a pass, a parameter, or the norm
    bool is_parameter = false;
    std::vector<std::uint64_t> samples{};  ///< of that pass, by id; none for a norm, or for samples without ids
  };
  /// Once it is set, parameters, states and running statistics stay as they were before the affected step.
  [[nodiscard]] const std::optional<NotFinite>& not_finite() const noexcept { return not_finite_; }
  void forget_not_finite() noexcept { not_finite_.reset(); }
  [[nodiscard]] parallel::Synchronizer& synchronizer() noexcept { return *synchronizer_; }
  /// What the synchronizer of this rank has sent to others within steps, and in how many of them. Libraries of devices
  /// count nothing.
  struct SentInSteps {
    comm::Sent sent{};
    std::uint64_t n_steps = 0;
  };
  [[nodiscard]] const SentInSteps& sent_in_steps() const noexcept { return sent_; }
  /// Passes through the network in a step.
  [[nodiscard]] std::uint64_t n_calls() const noexcept { return passes_of_step(recipe_, world_.n_ranks()); }
  [[nodiscard]] const nn::Network& network() const noexcept { return network_; }
  [[nodiscard]] nn::Executor& executor() noexcept { return *executor_; }

 private:
  void touched(std::size_t slot, std::span<const std::uint64_t> rows) override;
  void ready(std::size_t slot) override;
  void sum(runtime::DeviceSpan<double> values, runtime::Stream& stream) override;
  void need(std::size_t unit, runtime::Stream& stream) override;
  void enqueue(const data::Batch& batch, nn::Pass pass, const core::StepNumbers& numbers = {});

  /// The part of a batch that one pass takes.
  struct Part {
    data::Batch batch{};
    core::StepNumbers numbers{};
    nn::Pass backward = nn::Pass::backward;  ///< or backward_adding
    bool is_last = true;
  };
  template <class Run>
  void for_each_part(const data::Batch& batch, const StepPlace& at, const Run& run);
  void run(const data::Batch& batch, const StepPlace& at);
  void run_lanes(const data::Batch& batch, const StepPlace& at);
  void run_parts(const data::Batch& batch, const StepPlace& at);
  void inspect(const data::Batch& batch, const StepPlace& at);
  [[nodiscard]] NotFinite find_not_finite();
  void update(const core::StepNumbers& numbers);
  [[nodiscard]] bool is_recorded(const data::Batch& batch) const;
  void run_recorded(const data::Batch& batch, const StepPlace& at);

  /// A step that was not reported yet.
  struct Made {
    std::uint64_t step = 0;
    std::vector<std::uint64_t> ids{};  ///< of its samples
  };
  parallel::StepReport begin_step(const data::Batch& batch, const StepPlace& at);
  [[nodiscard]] parallel::StepReport report_before_last();
  [[nodiscard]] parallel::StepReport report(parallel::StepBack back, const Made& of);
  [[nodiscard]] nn::LossSums take_sums();
  void note_not_finite(const Made& of, bool is_loss_finite);

  [[nodiscard]] std::vector<parallel::StoredPiece> pieces(parallel::Access access);
  [[nodiscard]] std::size_t slot_named(const std::string& name) const;
  void require_finite(std::size_t slot, std::span<const float> values) const;
  [[nodiscard]] core::Slice rows_of(const parallel::Piece& piece) const;
  [[nodiscard]] const nn::Parameter& parameter_of(const parallel::Piece& piece) const;
  [[nodiscard]] checkpoint::Box box_of(const parallel::StoredPiece& piece) const;
  using FillPiece = std::function<void(const checkpoint::Box& box, std::span<float> values)>;
  void write_piece(const parallel::StoredPiece& piece, const FillPiece& fill);
  /// What this rank must save: boxes, and `fill`, which reads the pieces.
  struct ToSave {
    std::vector<checkpoint::Box> boxes{};
    checkpoint::FillBox fill{};
  };
  [[nodiscard]] ToSave to_save(std::vector<parallel::StoredPiece> kept);
  void unpack(std::size_t tensor, std::span<const float> elements, std::span<float> values) const;
  void read_all(const std::function<void(const checkpoint::FillTensor&)>& use) const;
  [[nodiscard]] std::span<const float> read(std::size_t tensor) const;

  const runtime::Communicator& world_;
  const Recipe& recipe_;
  metrics::PhaseTimers& timers_;
  nn::Network network_;
  std::vector<checkpoint::TensorSpec> tensors_;
  std::function<void()> on_progress_;
  std::uint64_t at_a_time_;
  std::unique_ptr<parallel::GroupSum> group_sum_{};  ///< over the ranks that batch normalization combines, if any
  std::unique_ptr<nn::Executor> executor_;
  std::unique_ptr<comm::Transport> of_synchronizer_;  ///< of all ranks, apart from what else they send
  std::unique_ptr<parallel::Synchronizer> synchronizer_;
  parallel::EnqueuedSteps* enqueued_ = nullptr;  ///< the synchronizer, if its steps are only enqueued
  std::optional<parallel::Lanes> lanes_{};
  std::optional<RunningStatistics> statistics_{};
  std::vector<std::size_t> slot_of_;  ///< its number, by parameter
  runtime::Stream stream_{};
  bool is_backward_ = false;          ///< the enqueued pass
  bool completes_gradients_ = false;  ///< the enqueued backward pass
  /// They hold passes with a part of a whole batch, and the update after the last of them if that can be recorded.
  Recordings recordings_{};
  Made made_{}, made_before_{};  ///< the last step, and the one before
  SentInSteps sent_{};
  int n_unreported_ = 0;     ///< of these two
  nn::LossSums of_lanes_{};  ///< of the last step
  std::optional<NotFinite> not_finite_{};
  runtime::Drill* drill_ = nullptr;
  std::optional<checkpoint::RankFile> rank_file_{};
  std::unique_ptr<float[]> copy_{};  ///< of the pieces that are being saved in the background
};

}  // namespace lockstep::training
