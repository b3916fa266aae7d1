// Whole steps on a device beside the host's Optimizer, bit by bit.
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "optim/cuda/arena.hpp"
#include "optim/cuda/device_rule.hpp"
#include "optim/optimizer.hpp"
#include "optim_arrays.hpp"
#include "support/optimizer_specs.hpp"
#include "support/sanitized.hpp"
#include "support/test_device.hpp"

namespace lockstep::optim::cuda {
namespace {

using core::bfloat16;
using core::float16;
using runtime::kernel::ThreadOrder;

/// With gaps that no step may touch, a range of more than a piece with a short end, and the smallest range.
const std::vector<Segment> segments{{{16, 48}, true}, {{64, 16}, false}, {{96, 8992}, true}};
constexpr std::size_t n_elements = 9120;
constexpr double max_norm = 2;

struct None {};

/// A device's arrays of a part, and a step's operations in order.
template <class G, class C>
class Part {
 public:
  Part(const OptimizerSpec& spec, const LossScaling& scaling, const std::vector<float>& parameters, ThreadOrder order)
      : device_{order},
        spec_{spec},
        scaling_{scaling},
        numbers_{segments.size() * device_rule(spec.kind).numbers_bytes} {
    parameters_.write(stream_, parameters);
    state_.write(stream_, {{.loss_scale = scaling.is_dynamic ? scaling.initial : 1}});
    const Cut tables = cut(segments);
    pieces_.write(stream_, tables.pieces);
    ranges_.write(stream_, tables.ranges);
    step_ = {.gradient = DeviceSpan<const G>{gradient_.span()},
             .parameters = parameters_.span(),
             .copy = {},
             .pieces = pieces_.span(),
             .done = state_.span()};
    for (std::size_t k = 0; k < state_names(spec).size(); ++k) step_.state[k] = states_[k].span();
    if constexpr (!std::is_same_v<C, None>) step_.copy = copy_.span();
  }

  StepState step(double lr, const std::vector<G>& gradient) {
    control_.write(stream_, {{.learning_rate = lr}});
    gradient_.write(stream_, gradient);
    static_cast<void>(device_.take_lines());
    squared_norms(stream_, step_.gradient, pieces_.span(), partials_.span());
    const Preparation preparation{.step = control_.span(),
                                  .state = state_.span(),
                                  .ranges = ranges_.span(),
                                  .squares = partials_.span(),
                                  .spec = spec_,
                                  .max_norm = max_norm,
                                  .scaling = scaling_};
    enqueue_step(stream_, preparation, step_, numbers_.span(), {parameter_partials_.span(), update_partials_.span()},
                 {parameter_squares_.span(), update_squares_.span()});
    lines_ = device_.take_lines();
    const StepState state = state_.read(stream_).front();
    EXPECT_TRUE(device_.complaints().empty()) << device_.complaints().front();
    return state;
  }

  std::vector<float> parameters() { return parameters_.read(stream_); }
  std::vector<float> state(std::size_t k) { return states_[k].read(stream_); }
  std::vector<double> parameter_squares() { return parameter_squares_.read(stream_); }
  std::vector<double> update_squares() { return update_squares_.read(stream_); }
  std::vector<C> copy() { return copy_.read(stream_); }
  /// Everything that a step writes unless it is skipped, except sums of squares of arrays.
  std::string bytes() {
    const bool measures_arrays = rule_row(spec_.kind).norms == Norms::of_gradient;
    return parameters_.bytes(stream_) + states_[0].bytes(stream_) + states_[1].bytes(stream_) + copy_.bytes(stream_) +
           numbers_.bytes(stream_) + update_partials_.bytes(stream_) +
           (measures_arrays ? "" : parameter_partials_.bytes(stream_));
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  test::TestDevice device_;
  runtime::Stream stream_{};
  OptimizerSpec spec_;
  LossScaling scaling_;
  OnDevice<core::StepNumbers> control_{1};
  OnDevice<StepState> state_{1};
  OnDevice<G> gradient_{n_elements};
  OnDevice<float> parameters_{n_elements};
  std::array<OnDevice<float>, 2> states_{OnDevice<float>{n_elements}, OnDevice<float>{n_elements}};
  OnDevice<C> copy_{n_elements};
  OnDevice<std::byte> numbers_;
  OnDevice<BlockPiece> pieces_{cut(segments).pieces.size()};
  OnDevice<PieceRange> ranges_{segments.size()};
  OnDevice<double> partials_{cut(segments).pieces.size()};
  OnDevice<double> parameter_partials_{cut(segments).pieces.size()};
  OnDevice<double> update_partials_{cut(segments).pieces.size()};
  OnDevice<double> parameter_squares_{segments.size()};
  OnDevice<double> update_squares_{segments.size()};
  StepArrays step_{};
  std::vector<std::string> lines_{};
};

/// The host's step for the same gradient. It uses the device's norms of tensors, which are added in another order;
/// apart from that they must equal the host's.
template <class Device>
void step_host(Optimizer& host, double lr, float factor, const std::vector<float>& gradient,
               std::vector<float>& parameters, Device& device, Norms kind) {
  const std::span<const float> only{gradient};
  const std::span<double> norms = host.begin_step(factor, {&only, 1}, parameters);
  for (std::size_t i = 0; i < norms.size() / 2; ++i) {
    const double scale = kind == Norms::of_gradient ? static_cast<double>(factor) * static_cast<double>(factor) : 1;
    const double of_parameter = device.parameter_squares()[i];
    const double of_update = device.update_squares()[i] * scale;
    EXPECT_NEAR(norms[2 * i], of_parameter, of_parameter * 1e-12);
    EXPECT_NEAR(norms[2 * i + 1], of_update, of_update * 1e-6);  // the host's are from scaled gradients, each rounded
    norms[2 * i] = of_parameter;
    norms[2 * i + 1] = of_update;
  }
  host.finish_step(lr, factor, {&only, 1}, parameters);
}

template <class G, class C>
void expect_host_bits(const OptimizerSpec& spec, ThreadOrder order) {
  const bool is_dynamic = std::is_same_v<G, float16>;
  const LossScaling scaling{.is_dynamic = is_dynamic, .initial = 64, .interval = 2};
  Values random{3};
  std::vector<float> parameters = random.take(n_elements, 2);
  Part<G, C> device{spec, scaling, parameters, order};
  Optimizer host{spec, segments, n_elements};
  float loss_scale = is_dynamic ? 64 : 1;
  std::vector<std::string> lines;
  for (int i = 0; i < 5; ++i) {
    const double lr = 0.1 / (1 + i);
    std::vector<G> gradient = rounded<G>(random.take(n_elements, loss_scale * (i == 1 ? 0.001F : 1)));
    const bool skips = is_dynamic && i == 2;
    if (skips) gradient[9000] = runtime::kernel::round_to<G>(std::numeric_limits<float>::infinity());
    const std::string before = device.bytes();
    const StepState state = device.step(lr, gradient);
    if (i > 0) {
      EXPECT_EQ(device.lines(), lines) << "a recorded step may be replayed";
    }
    lines = device.lines();
    ASSERT_EQ(state.skips, skips ? 1U : 0U);
    loss_scale = state.loss_scale;
    if (skips) {
      EXPECT_TRUE(device.bytes() == before);
      continue;
    }
    EXPECT_EQ(state.factor < 1 / loss_scale / 2, i != 1) << "clipped, but for the step of small gradients";
    step_host(host, lr, state.factor, widened(gradient), parameters, device, rule_row(spec.kind).norms);
    ASSERT_TRUE(same_bits(device.parameters(), parameters)) << i;
    for (std::size_t k = 0; k < host.state().size(); ++k) {
      const auto values = host.state()[k].values;
      ASSERT_TRUE(same_bits(device.state(k), {values.begin(), values.end()})) << i;
    }
  }
  if constexpr (!std::is_same_v<C, None>) {
    std::vector<C> expected(n_elements);
    for (const Segment& segment : segments)
      for (std::size_t i = segment.slice.offset; i < segment.slice.end(); ++i)
        expected[i] = runtime::kernel::round_to<C>(parameters[i]);
    EXPECT_TRUE(same_bits(device.copy(), expected));
  }
}

class EveryRule : public testing::TestWithParam<test::NamedSpec> {};

TEST_P(EveryRule, HasTheHostsBits) {
  const OptimizerSpec& spec = GetParam().spec;
  for (const ThreadOrder order : {ThreadOrder::ascending, ThreadOrder::descending, ThreadOrder::shuffled}) {
    if (is_slow && order != ThreadOrder::shuffled) continue;
    expect_host_bits<float, None>(spec, order);
    expect_host_bits<float, bfloat16>(spec, order);
    expect_host_bits<float, float16>(spec, order);
    expect_host_bits<bfloat16, None>(spec, order);
    expect_host_bits<bfloat16, bfloat16>(spec, order);
    expect_host_bits<float16, None>(spec, order);
    expect_host_bits<float16, float16>(spec, order);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryRule, testing::ValuesIn(test::optimizer_specs()),
                         [](const auto& test) { return test.param.name; });

TEST(Updates, RefuseACopyOfAnotherTypeThanTheGradients) {
  runtime::Stream stream;
  std::vector<bfloat16> gradient(16);
  std::vector<float16> copy(16);
  const StepArrays step{.gradient = DeviceSpan<const bfloat16>::at(gradient.data(), 16),
                        .copy = DeviceSpan<float16>::at(copy.data(), 16)};
  EXPECT_ANY_THROW(device_rule(OptimizerKind::sgd).update(stream, step, {}));
}

}  // namespace
}  // namespace lockstep::optim::cuda
