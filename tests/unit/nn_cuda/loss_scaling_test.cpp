// Steps in f16 whose loss is scaled by the optimizer kernels' number on the device.
#include <gtest/gtest.h>

#include "optim/cuda/arena.hpp"
#include "optim/cuda/device_rule.hpp"
#include "optim/optimizer_spec.hpp"
#include "unit/kernels/optim_arrays.hpp"
#include "unit/nn_cuda/on_test_device.hpp"

namespace lockstep::nn::cuda {
namespace {

namespace oc = optim::cuda;

constexpr double rate = 0.125;

oc::Cut cut_of(const Executor& executor) {
  std::vector<optim::Segment> segments;
  for (const ArenaSlot& slot : executor.slots()) segments.push_back({slot.slice});
  return oc::cut(segments);
}

/// Plain SGD by kernels, as a trainer enqueues it.
class Descent {
 public:
  Descent(runtime::Stream& stream, const oc::Cut& cut, oc::OnDevice<oc::StepState>& state)
      : state_{state},
        pieces_{stream, cut.pieces},
        ranges_{stream, cut.ranges},
        numbers_{stream, {{.learning_rate = rate}}},
        partials_{cut.pieces.size()},
        squares_{cut.ranges.size()},
        of_ranges_{cut.ranges.size()} {}

  void step(OnTestDevice& on) {
    runtime::Stream& stream = on.stream();
    const runtime::DeviceSpan<const float> gradients = on.gradients();
    oc::squared_norms(stream, gradients, pieces_.span(), partials_.span());
    oc::add_up(stream, partials_.span(), ranges_.span(), squares_.span());
    oc::enqueue_step(stream,
                     {.step = numbers_.span(),
                      .state = state_.span(),
                      .ranges = ranges_.span(),
                      .squares = squares_.span(),
                      .spec = optim::default_spec(optim::OptimizerKind::sgd),
                      .scaling = {.is_dynamic = true}},
                     {.gradient = gradients,
                      .parameters = on.parameters(),
                      .copy = on.weights(),
                      .pieces = pieces_.span(),
                      .done = state_.span()},
                     of_ranges_.raw(), {}, {});
  }

 private:
  oc::OnDevice<oc::StepState>& state_;
  oc::OnDevice<oc::BlockPiece> pieces_;
  oc::OnDevice<oc::PieceRange> ranges_;
  oc::OnDevice<core::StepNumbers> numbers_;
  oc::OnDevice<double> partials_, squares_;
  oc::OnDevice<optim::Sgd::Numbers> of_ranges_;
};

std::vector<float> values_of(runtime::DeviceSpan<float> span, runtime::Stream& stream) {
  const Buffer on_host{core::Bytes{span.size() * sizeof(float)}, Memory::pinned};
  stream.copy(on_host.bytes(), runtime::DeviceSpan<const std::byte>::at(reinterpret_cast<const std::byte*>(span.data()),
                                                                        on_host.bytes().size()));
  stream.wait();
  const auto values = on_host.as<float>();
  return {values.begin(), values.end()};
}

// Too large a scale overflows: such steps change only the scale, until one succeeds.
TEST(LossScaling, FindsItsScaleInF16) {
  const test::TestDevice device;
  const Case given = layer_cases()[0];
  oc::OnDevice<oc::StepState> state{1};
  const auto loss_scale = runtime::DeviceSpan<const float>::at(&state.span().data()->loss_scale, 1);
  OnTestDevice on{given, Precision::f16};
  on.executor().scale_loss(loss_scale);
  state.write(on.stream(), {{.loss_scale = 0x1p22F}});
  Descent descent{on.stream(), cut_of(on.executor()), state};
  const std::vector<float> before = values_of(on.parameters(), on.stream());
  oc::StepState now;
  int n_steps = 0;
  for (; now.n_steps == 0 && n_steps < 22; ++n_steps) {
    EXPECT_EQ(values_of(on.parameters(), on.stream()), before) << "a step that is skipped";
    on.forward(true);
    on.backward(1);
    descent.step(on);
    now = state.read(on.stream())[0];
  }
  EXPECT_GT(now.n_skipped, 2U);
  EXPECT_EQ(now.n_steps, 1U);
  EXPECT_EQ(now.loss_scale, std::ldexp(0x1p22F, -static_cast<int>(now.n_skipped)));

  static_cast<void>(on.reference_forward(true));
  on.reference().backward(1);
  const std::vector<float> after = values_of(on.parameters(), on.stream());
  const std::span<float> moved = on.fetch_gradients();
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = (before[i] - after[i]) / static_cast<float>(rate);
  on.expect_fetched(0.01);
  for (const std::string& complaint : device.complaints()) ADD_FAILURE() << complaint;
}

}  // namespace
}  // namespace lockstep::nn::cuda
