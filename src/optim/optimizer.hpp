// One owner's optimizer: it updates a contiguous part of the flat arena from the gradients of all ranks that share it.
// Invariant: an element's new value depends only on its own gradients and state and, if the rule needs them, on its
// tensor's norms. So an arena cut into parts, with one Optimizer each, keeps its bits if the norms do. Only the first
// step allocates.
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

/// A tensor, or the part of it that lies in the optimizer's part; offsets count from the part's begin. If `decays` is
/// false, it has no weight decay and, if the rule has rates of tensors, the global rate, as is usual for biases and
/// batch normalization.
struct Segment {
  core::Slice slice{};
  bool decays = true;
};

/// One span per rank, each covering the whole part; at least one.
using Gradients = std::span<const std::span<const float>>;

/// What a checkpoint stores of a part besides the parameters, element by element; all 0 before the first step. Names
/// are those of PyTorch's state_dict, except momentum (its momentum_buffer).
struct State {
  std::string_view name;
  std::span<float> values;
};

struct Elements;

class Optimizer {
 public:
  /// `segments`: ascending, without overlap, within [0, n_elements); elements outside them are never written.
  Optimizer(const OptimizerSpec& spec, std::vector<Segment> segments, std::size_t n_elements);

  /// A step of a part that holds whole tensors, or needs no norms. The gradient is the sum of `gradients` in the given
  /// order, in float32, times `scale`, which includes the factor of clipping.
  void step(double lr, float scale, Gradients gradients, std::span<float> parameters);

  /// Whether the update needs norms of whole tensors. Then each owner of a tensor calls begin_step(), replaces its
  /// norms by their sum over owners, and calls finish_step().
  [[nodiscard]] bool needs_norms() const noexcept { return optim::needs_norms(spec_.kind); }

  /// First of two passes: returns the squared norms of each segment i, of its parameters at [2 * i] and of its gradient
  /// or update, as the rule needs, at [2 * i + 1]. Returns nothing and does nothing if no norms are needed. Only reads
  /// `parameters`.
  std::span<double> begin_step(float scale, Gradients gradients, std::span<float> parameters);
  /// Second pass, with the norms that begin_step() returned; same scale, gradients and parameters. `touched` counts
  /// from the part's begin, ascending, without overlap: gradients elsewhere are 0 and are skipped if that saves time.
  /// Empty: gradients may be anywhere.
  void finish_step(double lr, float scale, Gradients gradients, std::span<float> parameters,
                   std::span<const core::Slice> touched = {});

  /// Returns the squared norms of the gradient by segment, for clip_factor(). Their sum is that of the part.
  [[nodiscard]] std::span<const double> squared_norms(float scale, Gradients gradients);

  /// Steps done; set when a checkpoint is loaded.
  [[nodiscard]] std::uint64_t n_steps() const noexcept { return n_steps_; }
  void set_n_steps(std::uint64_t n_steps) noexcept { n_steps_ = n_steps; }
  [[nodiscard]] std::span<const State> state() noexcept { return state_; }
  [[nodiscard]] std::size_t n_state_bytes() const noexcept { return state_.size() * n_elements_ * sizeof(float); }

 private:
  /// Elements of the whole part.
  [[nodiscard]] Elements start_pass(float scale, Gradients gradients, std::span<float> parameters);
  void update_touched(const Elements& range, std::span<const core::Slice> touched, const Settings& settings) const;
  void check_segments() const;
  void join_segments();

  OptimizerSpec spec_;
  std::size_t n_elements_;
  std::vector<Segment> segments_;
  std::vector<Segment> ranges_{};  ///< for one pass: segments, or joined neighbours with the same settings
  std::vector<std::unique_ptr<float[], void (*)(float*)>> arrays_{};
  std::vector<State> state_{};
  std::vector<double> norms_{};           ///< from begin_step()
  std::vector<double> gradient_norms_{};  ///< from squared_norms()
  std::vector<const float*> sources_{};
  std::uint64_t n_steps_ = 0;
};

}  // namespace lockstep::optim
