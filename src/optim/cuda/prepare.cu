#include "optim/cuda/prepare.hpp"
#include "optim/cuda/units.hpp"
#include "optim/numbers.hpp"

namespace lockstep::optim::cuda {
namespace {

LOCKSTEP_HOST_DEVICE inline void make(SgdNumbers& to, const OptimizerSpec& spec, bool decays, double lr,
                                      std::uint64_t step) {
  to = sgd_numbers(spec, decays, lr, step);
}
LOCKSTEP_HOST_DEVICE inline void make(AdamNumbers& to, const OptimizerSpec& spec, bool decays, double lr,
                                      std::uint64_t step) {
  to = adam_numbers(spec, decays, lr, step);
}
LOCKSTEP_HOST_DEVICE inline void make(AdadeltaNumbers& to, const OptimizerSpec& spec, bool decays, double lr,
                                      std::uint64_t) {
  to = adadelta_numbers(spec, decays, lr);
}
LOCKSTEP_HOST_DEVICE inline void make(LarsNumbers& to, const OptimizerSpec& spec, bool decays, double lr,
                                      std::uint64_t) {
  to = lars_numbers(spec, decays, lr);
}
LOCKSTEP_HOST_DEVICE inline void make(LambNumbers& to, const OptimizerSpec& spec, bool decays, double lr,
                                      std::uint64_t step) {
  to = lamb_numbers(spec, decays, lr, step);
}

/// One block: its first thread decides about the step, then each thread computes the numbers of some ranges.
template <class Numbers>
struct Prepare {
  static constexpr int max_threads = 256;
  const core::StepNumbers* step;
  StepState* state;
  const PieceRange* ranges;
  std::uint32_t n_ranges;
  const double* squares;
  std::uint32_t n_squares;
  OptimizerSpec spec;
  double max_norm;
  LossScaling scaling;
  Numbers* numbers;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const auto n_threads = static_cast<std::uint32_t>(team.n_threads());
    auto sums = team.per_thread(0.0);
    team.each([&](int thread) {
      for (auto i = static_cast<std::uint32_t>(thread); i < n_squares; i += n_threads) sums[thread] += squares[i];
    });
    const double total = team.sum(sums);
    team.each([&](int thread) {
      if (thread == 0) begin_step(*state, *step, scaling, total, max_norm);
    });
    if (state->skips != 0) return;
    team.each([&](int thread) {
      for (auto i = static_cast<std::uint32_t>(thread); i < n_ranges; i += n_threads)
        make(numbers[i], spec, ranges[i].decays, step->learning_rate, state->n_steps);
    });
  }
};

LOCKSTEP_HOST_DEVICE inline double rate_of(const LarsNumbers&, const OptimizerSpec& spec, bool decays, double lr,
                                           const optim::SquaredNorms& norms, float factor) {
  const auto scale = static_cast<double>(factor);
  return lars_rate(spec, decays, lr, {norms.parameter, norms.update * scale * scale});
}
LOCKSTEP_HOST_DEVICE inline double rate_of(const LambNumbers&, const OptimizerSpec&, bool decays, double lr,
                                           const optim::SquaredNorms& norms, float) {
  return lamb_rate(decays, lr, norms);
}

template <class Numbers>
struct Adapt {
  const core::StepNumbers* step;
  const StepState* state;
  const PieceRange* ranges;
  OptimizerSpec spec;
  const double* parameter;
  const double* update;
  Numbers* numbers;

  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    if (state->skips != 0) return;
    numbers[i].rate = static_cast<float>(
        rate_of(numbers[i], spec, ranges[i].decays, step->learning_rate, {parameter[i], update[i]}, state->factor));
  }
};

template <class Numbers>
void enqueue_prepare(Stream& stream, const Preparation& of, DeviceSpan<Numbers> numbers) {
  core::require(numbers.size() == of.ranges.size(), "every range has its numbers");
  const Prepare<Numbers> body{.step = of.step.data(),
                              .state = of.state.data(),
                              .ranges = of.ranges.data(),
                              .n_ranges = static_cast<std::uint32_t>(of.ranges.size()),
                              .squares = of.squares.data(),
                              .n_squares = static_cast<std::uint32_t>(of.squares.size()),
                              .spec = of.spec,
                              .max_norm = of.max_norm,
                              .scaling = of.scaling,
                              .numbers = numbers.data()};
  kernel::enqueue(stream, "prepare", {},
                  {region_of(of.step), region_of(of.state), region_of(of.ranges), region_of(of.squares)},
                  {region_of(of.state), region_of(numbers)}, body);
}

template <class Numbers>
void enqueue_adapt(Stream& stream, const Preparation& of, const Norms& norms, DeviceSpan<Numbers> numbers) {
  const std::size_t n = of.ranges.size();
  core::require(numbers.size() == n && norms.parameter.size() == n && norms.update.size() == n,
                "every range has its numbers");
  kernel::for_each(stream, "adapt", n,
                   {region_of(of.step), region_of(of.state), region_of(of.ranges), region_of(norms.parameter),
                    region_of(norms.update), region_of(numbers)},
                   {region_of(numbers)},
                   Adapt<Numbers>{of.step.data(), of.state.data(), of.ranges.data(), of.spec, norms.parameter.data(),
                                  norms.update.data(), numbers.data()});
}

}  // namespace

void prepare(Stream& stream, const Preparation& of, DeviceSpan<SgdNumbers> numbers) {
  enqueue_prepare(stream, of, numbers);
}
void prepare(Stream& stream, const Preparation& of, DeviceSpan<AdamNumbers> numbers) {
  enqueue_prepare(stream, of, numbers);
}
void prepare(Stream& stream, const Preparation& of, DeviceSpan<AdadeltaNumbers> numbers) {
  enqueue_prepare(stream, of, numbers);
}
void prepare(Stream& stream, const Preparation& of, DeviceSpan<LarsNumbers> numbers) {
  enqueue_prepare(stream, of, numbers);
}
void prepare(Stream& stream, const Preparation& of, DeviceSpan<LambNumbers> numbers) {
  enqueue_prepare(stream, of, numbers);
}

void adapt(Stream& stream, const Preparation& of, const Norms& norms, DeviceSpan<LarsNumbers> numbers) {
  enqueue_adapt(stream, of, norms, numbers);
}
void adapt(Stream& stream, const Preparation& of, const Norms& norms, DeviceSpan<LambNumbers> numbers) {
  enqueue_adapt(stream, of, norms, numbers);
}

}  // namespace lockstep::optim::cuda
