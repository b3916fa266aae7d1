// A device's own decisions about a step: whether it is done, with which factor and numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/flags.hpp"
#include "optim/cuda/device_rule.hpp"
#include "optim/optimizer_spec.hpp"
#include "optim_arrays.hpp"
#include "support/test_device.hpp"

namespace lockstep::optim::cuda {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Ranges of one piece each on a device, and the numbers of a step by rule R.
template <class R>
class Device {
 public:
  using Numbers = typename R::Numbers;

  Device(const OptimizerSpec& spec, const LossScaling& scaling, double max_norm, StepState state = {}) {
    if (scaling.is_dynamic && state.loss_scale == 1) state.loss_scale = scaling.initial;
    state_.write(stream_, {state});
    ranges_.write(stream_, {{0, 1, true}, {1, 1, false}, {2, 1, true}});
    of_ = {.step = step_.span(),
           .state = state_.span(),
           .ranges = ranges_.span(),
           .squares = squares_.span(),
           .spec = spec,
           .max_norm = max_norm,
           .scaling = scaling};
  }

  StepState prepare(const core::StepNumbers& step, const std::vector<double>& squares) {
    step_.write(stream_, {step});
    squares_.write(stream_, squares);
    device_rule(of_.spec.kind).prepare(stream_, of_, numbers_.raw());
    EXPECT_TRUE(device_.complaints().empty()) << device_.complaints().front();
    return state_.read(stream_).front();
  }
  std::vector<Numbers> adapt(const std::vector<double>& parameter, const std::vector<double>& update) {
    const OnDevice<double> parameters{stream_, parameter};
    const OnDevice<double> updates{stream_, update};
    device_rule(of_.spec.kind).adapt(stream_, of_, {parameters.span(), updates.span()}, numbers_.raw());
    return numbers_.read(stream_);
  }
  std::vector<Numbers> numbers() { return numbers_.read(stream_); }

 private:
  test::TestDevice device_{};
  runtime::Stream stream_{};
  OnDevice<core::StepNumbers> step_{1};
  OnDevice<StepState> state_{1};
  OnDevice<PieceRange> ranges_{3};
  OnDevice<double> squares_{3};
  OnDevice<Numbers> numbers_{3};
  Preparation of_{};
};

/// The rule of torch.cuda.amp.GradScaler.update(), written independently.
class PlainScaler {
 public:
  explicit PlainScaler(const LossScaling& scaling) : of_{scaling}, scale_{scaling.initial} {}
  void update(bool found_inf) {
    if (found_inf) {
      scale_ = scale_ * of_.backoff;
      tracker_ = 0;
      return;
    }
    tracker_ += 1;
    if (tracker_ < of_.interval) return;
    tracker_ = 0;
    if (std::isfinite(scale_ * of_.growth)) scale_ = scale_ * of_.growth;
  }
  [[nodiscard]] float scale() const { return scale_; }

 private:
  LossScaling of_;
  float scale_;
  std::uint32_t tracker_ = 0;
};

const OptimizerSpec adam_spec{.kind = OptimizerKind::adam, .weight_decay = 0.01};

void expect_sequence(const LossScaling& scaling, const std::vector<double>& squares) {
  Device<Adam> device{adam_spec, scaling, 0};
  PlainScaler plain{scaling};
  std::uint64_t n_done = 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    const bool is_bad = !std::isfinite(squares[i]);
    const float before = plain.scale();
    const StepState state = device.prepare({.learning_rate = 0.1}, {1, squares[i], 0});
    plain.update(is_bad);
    n_done += is_bad ? 0 : 1;
    EXPECT_EQ(state.skips, is_bad ? 1U : 0U) << i;
    EXPECT_EQ(state.loss_scale, plain.scale()) << i;
    EXPECT_EQ(state.factor, 1 / before) << i;
    EXPECT_EQ(state.n_steps, n_done);
    EXPECT_EQ(state.n_skipped, i + 1 - n_done);
  }
}

TEST(LossScaling, HasTheNumbersOfPyTorch) {
  const LossScaling scaling;
  EXPECT_EQ(scaling.initial, 65536);
  EXPECT_EQ(scaling.growth, 2);
  EXPECT_EQ(scaling.backoff, 0.5F);
  EXPECT_EQ(scaling.interval, 2000U);
}

TEST(LossScaling, FollowsPyTorch) {
  const std::vector<double> squares{1, 1, 1, infinity, 1, 1, nan, infinity, 1, 1, 1, 1, 1, 1, 1, 1, nan, 1, 1, 1};
  expect_sequence({.is_dynamic = true, .interval = 3}, squares);
  expect_sequence({.is_dynamic = true, .initial = 100, .growth = 1.5F, .backoff = 0.3F, .interval = 1}, squares);
  expect_sequence({.is_dynamic = true, .initial = 0x1p126F, .interval = 2}, std::vector<double>(9, 1));
  expect_sequence({.is_dynamic = true}, std::vector<double>(2001, 1));
}

TEST(LossScaling, IsAppliedBesideTheScaleOfTheStep) {
  Device<Adam> device{adam_spec, {.is_dynamic = true, .initial = 8}, 0};
  const StepState state = device.prepare({.learning_rate = 0.1, .scale = 4}, {32 * 32, 0, 0});
  EXPECT_EQ(state.factor, 1.0F / 32);
  EXPECT_EQ(state.norm, 1);
}

TEST(LossScaling, SkipsWhatAFloatCannotHoldOnceUnscaled) {
  Device<Adam> device{adam_spec, {.is_dynamic = true, .initial = 0x1p-20F}, 0};
  EXPECT_EQ(device.prepare({}, {1e60, 0, 0}).skips, 0U);
  EXPECT_EQ(device.prepare({}, {1e66, 0, 0}).skips, 1U);
}

// Without dynamic scaling, no step is done any more, as on the host.
TEST(LossScaling, IsOffUnlessAskedFor) {
  Device<Adam> device{adam_spec, {}, 1};
  for (const double square : {nan, 1.0}) {
    const StepState state = device.prepare({.learning_rate = 0.1}, {square, 0, 0});
    EXPECT_EQ(state.skips, 1U);
    EXPECT_EQ(state.is_halted, 1U);
    EXPECT_EQ(state.n_steps, 0U);
    EXPECT_EQ(state.loss_scale, 1);
  }
}

TEST(Prepare, ClipsByTheNormOfAllRanges) {
  Device<Adam> device{adam_spec, {}, 1};
  const StepState state = device.prepare({.learning_rate = 0.1, .scale = 2}, {16, 36, 12});
  EXPECT_EQ(state.norm, 4);
  EXPECT_EQ(state.factor, 0.5F * static_cast<float>(clip_factor(4, 1)));
  EXPECT_EQ(device.prepare({.learning_rate = 0.1}, {0.25, 0, 0}).factor, 1);
}

TEST(Prepare, CountsOnlyStepsThatAreDone) {
  Device<Adam> device{adam_spec, {.is_dynamic = true}, 0, {.n_steps = 41, .loss_scale = 2}};
  device.prepare({.learning_rate = 0.1}, {1, 0, 0});
  const std::vector<Adam::Numbers> first = device.numbers();
  const auto of_host = [](bool decays, double lr, std::uint64_t step) {
    return Adam::numbers({.spec = adam_spec, .decays = decays, .lr = lr, .step = step});
  };
  EXPECT_TRUE(same_bits(first, {of_host(true, 0.1, 42), of_host(false, 0.1, 42), of_host(true, 0.1, 42)}));
  device.prepare({.learning_rate = 0.2}, {infinity, 0, 0});
  EXPECT_TRUE(same_bits(device.numbers(), first));
  device.prepare({.learning_rate = 0.3}, {1, 0, 0});
  EXPECT_TRUE(same_bits(device.numbers()[0], of_host(true, 0.3, 43)));
}

bool same_numbers(const Sgd::Numbers& a, const Sgd::Numbers& b) {  // they have padding
  return a.decay == b.decay && a.lr == b.lr && a.momentum == b.momentum && a.undamped == b.undamped &&
         a.is_nesterov == b.is_nesterov;
}
template <class Numbers>
bool same_numbers(const Numbers& a, const Numbers& b) {
  return same_bits(a, b);
}

TEST(Prepare, MakesTheNumbersOfTheHost) {
  static_cast<void>(for_each_rule(Rules{}, []<class R>(R) {
    OptimizerSpec spec{
        .weight_decay = 0.01, .momentum = 0.9, .dampening = 0.1, .beta1 = 0.8, .rho = 0.95, .eps = 1e-7, .trust = 0.02};
    spec.kind = core::find_named(all_optimizer_kinds, R::description.word, "rule", "");
    Device<R> device{spec, {}, 0};
    for (const std::uint64_t step : {1U, 2U}) {
      device.prepare({.learning_rate = 0.03}, {});
      for (const std::size_t range : {0U, 1U}) {
        const Settings settings{.spec = spec, .decays = range == 0, .lr = 0.03, .step = step};
        EXPECT_TRUE(same_numbers(device.numbers()[range], R::numbers(settings))) << R::description.word;
      }
    }
    return true;
  }));
}

TEST(Adapt, GivesTensorsTheirRates) {
  OptimizerSpec spec{.kind = OptimizerKind::lars, .weight_decay = 0.01, .momentum = 0.9, .trust = 0.02};
  Device<Lars> lars{spec, {}, 0};
  lars.prepare({.learning_rate = 0.3, .scale = 4}, {});
  EXPECT_TRUE(same_bits(lars.numbers()[0], Lars::numbers({.spec = spec, .lr = 0.3})));
  const std::vector<Lars::Numbers> rates = lars.adapt({9, 9, 0}, {16 * 25, 16 * 25, 1});
  // 0.02 * 3 / (5 + 0.01 * 3), of gradients that are 4 times too large in memory
  EXPECT_EQ(rates[0].rate, static_cast<float>(0.3 * (0.02 * 3 / (5 + 0.01 * 3))));
  EXPECT_EQ(rates[1].rate, 0.3F);
  EXPECT_EQ(rates[2].rate, 0.3F);

  spec.kind = OptimizerKind::lamb;
  Device<Lamb> lamb{spec, {.is_dynamic = true}, 0};
  lamb.prepare({.learning_rate = 0.3}, {});
  EXPECT_EQ(lamb.adapt({36, 36, 36}, {4, 4, 0})[0].rate, static_cast<float>(0.3 * 3));
  lamb.prepare({.learning_rate = 0.3}, {nan, 0, 0});
  EXPECT_EQ(lamb.adapt({100, 36, 36}, {4, 4, 0})[0].rate, static_cast<float>(0.3 * 3));  // skipped: unchanged
}

}  // namespace
}  // namespace lockstep::optim::cuda
