// One owner's optimizer: it updates a contiguous part of the flat arena from the gradients of all ranks that share it.
// Invariant: an element's new value depends on its own gradients and state and (lars, lamb) its tensor's norms alone,
// so an arena cut into parts, one Optimizer each, keeps its bits if the norms do. Only the first step allocates.
// Used by parallel/; parts share nothing, so several threads may each step their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/slice.hpp"
#include "optim/optimizer_spec.hpp"

namespace lockstep::optim {

/// A tensor, or what of it lies in the part; in elements from the part's begin. One that does not decay has no weight
/// decay and, with lars and lamb, the global rate, as is usual for biases and batch normalization.
struct Segment {
  core::Slice slice{};
  bool decays = true;
};

/// One span per rank, each of the whole part; at least one.
using Gradients = std::span<const std::span<const float>>;

/// What a checkpoint keeps of a part besides the parameters, element by element; all 0 before the first step. Named as
/// in PyTorch's state_dict, but for its momentum_buffer: momentum (sgd with one, lars); exp_avg and exp_avg_sq (adam,
/// adamw, lamb); square_avg and acc_delta (adadelta).
struct State {
  std::string_view name;
  std::span<float> values;
};

class Family;
struct Range;

class Optimizer {
 public:
  /// `segments`: ascending, without overlap, within [0, n_elements); what they leave out is never written.
  Optimizer(const OptimizerSpec& spec, std::vector<Segment> segments, std::size_t n_elements);
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// A step of a part that holds whole tensors, or needs no norms. The gradient is the sum of `gradients` in the order
  /// given, in float32, times `scale`, which is where a factor of clipping goes.
  void step(double lr, float scale, Gradients gradients, std::span<float> parameters);

  /// Whether the update needs norms of whole tensors (lars, lamb): then a tensor cut over several owners is stepped by
  /// begin_step() on each, the sum of their norms put in the place of each one's own, and finish_step().
  [[nodiscard]] bool needs_norms() const noexcept;

  /// The first of two passes: the squared norms of each segment i, of its parameters at [2 * i] and of its gradient
  /// (lars) or update (lamb) at [2 * i + 1]. Does nothing and is empty if none are needed. `parameters` are only read.
  std::span<double> begin_step(float scale, Gradients gradients, std::span<float> parameters);
  /// The second, by the norms where begin_step() left them; with the same scale, gradients and parameters. `touched`,
  /// from the part's begin: ascending, without overlap; gradients elsewhere are 0 and, where it saves time, not read.
  /// None: they may be anywhere.
  void finish_step(double lr, float scale, Gradients gradients, std::span<float> parameters,
                   std::span<const core::Slice> touched = {});

  /// Of the gradient, segment by segment, for clip_factor(). Their sum is the part's, whichever tensors it holds.
  [[nodiscard]] std::span<const double> squared_norms(float scale, Gradients gradients);

  /// Steps done; set when a checkpoint is loaded.
  [[nodiscard]] std::uint64_t n_steps() const noexcept { return n_steps_; }
  void set_n_steps(std::uint64_t n_steps) noexcept { n_steps_ = n_steps; }
  [[nodiscard]] std::span<const State> state() noexcept { return state_; }

 private:
  struct Pass;
  [[nodiscard]] Pass start_pass(float scale, Gradients gradients, std::span<float> parameters);
  void update_touched(const Range& range, std::span<const core::Slice> touched, double lr) const;
  void check_segments() const;
  void join_segments();

  std::size_t n_elements_;
  std::vector<Segment> segments_;
  std::vector<Segment> ranges_{};  ///< of one pass: segments, or neighbours treated alike joined
  std::unique_ptr<Family> family_;
  std::vector<std::unique_ptr<float[], void (*)(float*)>> arrays_{};
  std::vector<State> state_{};
  std::vector<double> norms_{};           ///< of begin_step()
  std::vector<double> gradient_norms_{};  ///< of squared_norms()
  std::vector<const float*> sources_{};
  std::uint64_t n_steps_ = 0;
};

}  // namespace lockstep::optim
