// The executor for GPUs: every layer and model against the reference in double precision, and what its steps ask of a
// device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "nn/cuda/cuda_executor.hpp"
#include "support/error_table.hpp"
#include "support/sanitized.hpp"
#include "support/test_convolutions.hpp"
#include "support/test_device.hpp"
#include "unit/nn/comparison.hpp"

namespace lockstep::nn::cuda {
namespace {

using runtime::Buffer;
using runtime::Memory;

/// An executor and the reference, on the same parameters and samples.
class OnTestDevice final : public Hooks {
 public:
  OnTestDevice(const Case& given, Precision precision)
      : tested_{given},
        options_{options_of(given, precision)},
        executor_{make_cuda_executor(given.network, options_, *convolutions_)},
        reference_{given.network},
        parameters_{core::Bytes{executor_->arena_elements() * sizeof(float)}, Memory::device},
        gradients_{core::Bytes{executor_->arena_elements() * sizeof(float)}, Memory::device},
        on_host_{core::Bytes{executor_->arena_elements() * sizeof(float)}, Memory::pinned} {
    for (std::size_t i = 0; i < tested_.network.parameters().size(); ++i) {
      const std::vector<float> values = to_precision(parameter_values(tested_.network, i), precision);
      const ArenaSlot& slot = slot_of(i);
      executor_->pack(static_cast<int>(i), slot.all_rows(), values, slot.slice.of(on_host_.as<float>()));
      reference_.parameter(i).assign(values.begin(), values.end());
    }
    stream_.copy(parameters_.on_device<std::byte>(), on_host_.bytes());
    stream_.fill(gradients_.on_device<std::byte>(), std::byte{0x40});
    stream_.wait();
    executor_->bind(parameters_.on_device<float>(), gradients_.on_device<float>());
    x_ = to_precision(tested_.batch.x, precision);
    targets_.assign(tested_.batch.targets.begin(), tested_.batch.targets.end());
    tested_.batch.x.assign(x_.begin(), x_.end());
    tested_.batch.targets.assign(targets_.begin(), targets_.end());
    for (std::uint64_t i = 0; i < tested_.batch.n; ++i) ids_.push_back(100 + i);
    tested_.options.keeps = [this](int node, std::uint64_t sample, std::uint64_t element) {
      const auto& layer = std::get<Dropout>(tested_.network.nodes()[static_cast<std::size_t>(node)].layer);
      return keeps(options_.seed, numbers_.epoch, node, ids_[sample], element, layer.probability);
    };
  }

  void forward(bool is_training, double share_of_step = 1) {
    core::StepNumbers numbers = numbers_;
    numbers.share_of_step = share_of_step;
    executor_->enqueue(batch(), is_training ? Pass::forward : Pass::evaluation, numbers, *this, stream_);
  }
  /// Samples [begin, end), for evaluation.
  void evaluate(std::uint64_t begin, std::uint64_t end) {
    executor_->enqueue(batch().part(begin, end - begin), Pass::evaluation, numbers_, *this, stream_);
  }
  LossSums sums() { return executor_->sums(); }
  void backward(float weight, bool adds = false) {
    n_ready_ = 0;
    core::StepNumbers numbers = numbers_;
    numbers.sample_weight = weight;
    executor_->enqueue({}, adds ? Pass::backward_adding : Pass::backward, numbers, *this, stream_);
    EXPECT_EQ(n_ready_, executor_->slots().size());
  }
  LossSums reference_forward(bool is_training) {
    ReferenceOptions options = tested_.options;
    options.is_training = is_training;
    return reference_.forward(tested_.batch, options);
  }

  /// Of gradients and statistics.
  void expect_as_reference(double tolerance, double factor = 1) {
    stream_.copy(on_host_.bytes(), gradients_.on_device<std::byte>());
    stream_.wait();
    const Network& network = tested_.network;
    for (std::size_t i = 0; i < network.parameters().size(); ++i) {
      const ArenaSlot& slot = slot_of(i);
      std::vector<float> found(n_elements(network.parameters()[i].shape));
      const std::span<const float> elements = slot.slice.of(on_host_.as<float>());
      executor_->unpack(static_cast<int>(i), slot.all_rows(), elements, found);
      std::vector<double> wanted = reference_.gradient(i);
      for (double& value : wanted) value *= factor;
      expect_below(tolerance, relative_error(found, wanted), network.parameters()[i].name);
      EXPECT_TRUE(has_zero_padding(i, slot, found, elements)) << network.parameters()[i].name;
    }
    for (std::size_t i = 0; i < network.statistics().size(); ++i)
      expect_below(tolerance, relative_error(executor_->statistic(static_cast<int>(i)), reference_.statistic(i)),
                   network.statistics()[i].name);
  }

  /// Of a loss.
  void expect_loss(double found, double wanted, double tolerance) const {
    expect_below(tolerance, std::abs(found - wanted) / std::abs(wanted), "loss");
  }

  Reference& reference() { return reference_; }

 private:
  void expect_below(double tolerance, double error, const std::string& of) const {
    const char* const precision = options_.precision == Precision::f32 ? "f32" : "bf16";
    EXPECT_TRUE(test::note_error(fmt::format("{} {} {}", precision, tested_.name, of), error, tolerance))
        << of << " is off by " << error << ", more than " << tolerance;
  }
  [[nodiscard]] data::Batch batch() const {
    return {
        .n = tested_.batch.n,
        .x = tested_.batch.ids.empty() ? std::as_bytes(std::span{x_}) : std::as_bytes(std::span{tested_.batch.ids}),
        .y = targets_.empty() ? std::as_bytes(std::span{tested_.batch.classes}) : std::as_bytes(std::span{targets_}),
        .ids = ids_};
  }
  [[nodiscard]] const ArenaSlot& slot_of(std::size_t parameter) const {
    const auto slots = executor_->slots();
    return *std::ranges::find(slots, static_cast<int>(parameter), &ArenaSlot::parameter);
  }
  /// What is packed again is all there is.
  bool has_zero_padding(std::size_t parameter, const ArenaSlot& slot, std::span<const float> logical,
                        std::span<const float> elements) const {
    std::vector<float> again(elements.size(), 1);
    executor_->pack(static_cast<int>(parameter), slot.all_rows(), logical, again);
    return std::ranges::equal(again, elements);
  }
  void touched(std::size_t, std::span<const std::uint64_t>) override {}
  void ready(std::size_t slot) override { EXPECT_EQ(slot, n_ready_++); }
  void sum(runtime::DeviceSpan<double>, runtime::Stream&) override {}

  Case tested_;
  ExecutorOptions options_;
  std::unique_ptr<Convolutions> convolutions_ = test::make_convolutions();
  std::unique_ptr<Executor> executor_;
  Reference reference_;
  Buffer parameters_, gradients_, on_host_;
  runtime::Stream stream_{};
  std::vector<float> x_{}, targets_{};
  std::vector<std::uint64_t> ids_{};
  core::StepNumbers numbers_{.epoch = 3};
  std::size_t n_ready_ = 0;
};

class CudaExecutorTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& complaint : device_.complaints()) ADD_FAILURE() << complaint;
  }

  /// A training step, the same added once more, and an evaluation.
  static void expect_as_reference(const Case& given, Precision precision, double tolerance) {
    SCOPED_TRACE(given.name);
    OnTestDevice on{given, precision};
    const LossSums wanted = on.reference_forward(true);
    on.forward(true);
    on.backward(0.125F);
    const LossSums found = on.sums();
    on.expect_loss(found.loss, wanted.loss, tolerance);
    EXPECT_EQ(found.n, wanted.n);
    if (precision == Precision::f32 && tolerance < 1e-3) {
      EXPECT_EQ(found.n_top1, wanted.n_top1);
      EXPECT_EQ(found.n_top5, wanted.n_top5);
    }
    on.reference().backward(0.125);
    on.expect_as_reference(tolerance);
    on.forward(true, 0);  // a backward pass overwrites what it read
    static_cast<void>(on.sums());
    on.backward(0.125F, true);
    on.expect_as_reference(tolerance, 2);
    const LossSums evaluated = on.reference_forward(false);
    on.forward(false);
    on.expect_loss(on.sums().loss, evaluated.loss, tolerance);
  }

  test::TestDevice device_{};
  const double tolerance_ = test::tolerance_in_f32(1e-5);
};

TEST_F(CudaExecutorTest, LayersAreAsTheReference) {
  for (const Case& given : layer_cases()) expect_as_reference(given, Precision::f32, tolerance_);
}

TEST_F(CudaExecutorTest, LayersInBf16AreNearTheReference) {
  for (const Case& given : layer_cases()) expect_as_reference(given, Precision::bf16, 0.05);
}

TEST_F(CudaExecutorTest, ModelsAreAsTheReference) {
  for (const Case& given : model_cases()) {
    // A sanitizer takes minutes for the larger one, whose layers it sees above.
    if (given.name == "resnet50" || (is_sanitized && given.name == "resnet18_cifar")) continue;
    expect_as_reference(given, Precision::f32, 2 * tolerance_);
  }
}

TEST_F(CudaExecutorTest, AsksForTheSameStepAgain) {
  if (!device_.is_recorder()) GTEST_SKIP() << "only a recorder tells what it is asked for";
  for (const Case& given : model_cases()) {
    if (given.name != "mnist_cnn" && (is_sanitized || given.name != "resnet18_cifar")) continue;
    OnTestDevice on{given, Precision::bf16};
    const auto step = [&] {
      on.forward(true);
      on.backward(1);
    };
    step();
    static_cast<void>(on.sums());
    step();
    static_cast<void>(device_.take_lines());
    const int n_allocations = device_.n_allocations();
    step();
    const std::vector<std::string> second = device_.take_lines();
    step();
    EXPECT_EQ(device_.take_lines(), second) << given.name;
    EXPECT_EQ(device_.n_allocations(), n_allocations) << given.name;
  }
}

TEST_F(CudaExecutorTest, AddsUpTheGradientsOfAllReaders) {
  Network net;
  const Value x = net.conv("conv1", net.input({3, 6, 6}), {.n_out = 5, .kernel = 3, .padding = 1});
  const Value a = net.conv("conv2", x, {.n_out = 5, .kernel = 1}), b = net.batch_norm("bn1", x), c = net.relu(x);
  const Value sum = net.add(net.add(a, b), net.add(c, net.add(x, x)), {.has_relu = true});
  net.linear("fc", net.global_avg_pool(sum), {.n_out = 4});
  Case given{"readers", net};
  given.batch = {.n = 2, .classes = {3, 0}};
  for (std::uint64_t i = 0; i < 2 * 3 * 6 * 6; ++i) given.batch.x.push_back(value(21, i));
  expect_as_reference(given, Precision::f32, tolerance_);
}

// What batches are sent from is not overwritten before it is sent.
TEST_F(CudaExecutorTest, AddsUpPassesThatNobodyWaitedFor) {
  const Case given = layer_cases()[2];
  OnTestDevice on{given, Precision::f32};
  const LossSums wanted = on.reference_forward(false);
  on.evaluate(0, 1);
  on.evaluate(1, 3);
  const LossSums found = on.sums();
  EXPECT_EQ(found.n, 3U);
  EXPECT_NEAR(found.loss, wanted.loss, tolerance_ * wanted.loss);
  EXPECT_EQ(on.sums().n, 0U) << "sums() begins anew";
}

// A rank without samples has gradients of 0, and its slots are ready like all others'.
TEST_F(CudaExecutorTest, TakesABatchOfNone) {
  OnTestDevice on{layer_cases()[2], Precision::f32};
  static_cast<void>(on.reference_forward(true));
  on.reference().backward(1);
  on.forward(true);
  on.backward(1);
  on.evaluate(0, 0);
  on.backward(1);
  on.expect_as_reference(1e-6, 0);
}

TEST_F(CudaExecutorTest, RefusesLabelsThatAreNoClass) {
  Case given = layer_cases()[1];
  given.batch.classes[2] = 7;
  OnTestDevice on{given, Precision::f32};
  on.forward(true);
  EXPECT_ANY_THROW(static_cast<void>(on.sums()));
}

}  // namespace
}  // namespace lockstep::nn::cuda
