// An executor for GPUs on the device in use, beside the reference.
// Invariant: both have the same parameters and samples, rounded to the executor's type.
// Used by the tests of nn/cuda.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <optional>

#include "nn/cuda/cuda_executor.hpp"
#include "nn/own_arenas.hpp"
#include "optim/cuda/arena.hpp"
#include "support/error_table.hpp"
#include "support/test_convolutions.hpp"
#include "support/test_device.hpp"
#include "unit/nn/comparison.hpp"

namespace lockstep::nn::cuda {

using runtime::Buffer;
using runtime::Memory;

/// The operations of a device since the last call, without a step's numbers, which change.
template <class Device>
[[nodiscard]] std::vector<std::string> take_lasting_lines(Device& device) {
  std::vector<std::string> lines = device.take_lines();
  std::erase_if(lines, [](const std::string& line) { return line.find(" put ") != std::string::npos; });
  return lines;
}

/// An executor and the reference, on the same parameters and samples.
class OnTestDevice final : public Hooks {
 public:
  OnTestDevice(const Case& given, Precision precision, bool is_group_of_ranks = false, bool fuses = false,
               const PlaceParameters& place = {})
      : convolutions_{test::make_convolutions(fuses)},
        tested_{given},
        loss_scale_{core::Bytes{sizeof(float)}, Memory::device},
        options_{options_of(given, precision)},
        executor_{make_cuda_executor(given.network, joined(options_, is_group_of_ranks, place), *convolutions_)},
        reference_{given.network},
        parameters_{core::Bytes{executor_->arena_elements() * sizeof(float)}, Memory::device},
        gradients_{core::Bytes{executor_->arena_elements() * sizeof(float)}, Memory::device},
        weights_{core::Bytes{executor_->weights_bytes()}, Memory::device},
        on_host_{core::Bytes{executor_->arena_elements() * sizeof(float)}, Memory::pinned} {
    for (std::size_t i = 0; i < tested_.network.parameters().size(); ++i) {
      const std::vector<float> values = to_precision(parameter_values(tested_.network, i), precision);
      const ArenaSlot& slot = slot_of(i);
      executor_->pack(static_cast<int>(i), slot.all_rows(), values, slot.slice.of(on_host_.as<float>()));
      reference_.parameter(i).assign(values.begin(), values.end());
    }
    stream_.fill(loss_scale_.on_device<std::byte>(), std::byte{0x42});
    stream_.copy(parameters_.on_device<std::byte>(), on_host_.bytes());
    optim::cuda::cast(stream_, parameters(), weights());
    stream_.fill(gradients_.on_device<std::byte>(), std::byte{0x40});
    stream_.wait();
    if (precision == Precision::f16) executor_->scale_loss(loss_scale_.on_device<float>());
    executor_->bind(places_in(*executor_, parameters(), gradients(), weights_.on_device<std::byte>()));
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
  /// Samples [begin, end).
  void forward_part(Pass pass, std::uint64_t begin, std::uint64_t end) {
    executor_->enqueue(batch().part(begin, end - begin), pass, numbers_, *this, stream_);
  }
  /// Sends samples [begin, end) for passes in training.
  void send(std::uint64_t begin, std::uint64_t end, float weight) {
    core::StepNumbers numbers = numbers_;
    numbers.sample_weight = weight;
    executor_->send(batch().part(begin, end - begin), numbers, *this, stream_);
  }
  void enqueue_sent(bool adds = false) {
    n_ready_ = 0;
    executor_->enqueue_sent(adds ? Pass::backward_adding : Pass::backward, *this, stream_);
    EXPECT_EQ(n_ready_, executor_->slots().size());
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

  /// Compares gradients and statistics.
  void expect_as_reference(double tolerance, double factor = 1) {
    static_cast<void>(fetch_gradients());
    if (options_.precision == Precision::f16) factor *= static_cast<double>(f16_scale);
    expect_fetched(tolerance, factor);
  }
  [[nodiscard]] std::span<float> fetch_gradients() {
    stream_.copy(on_host_.bytes(), gradients_.on_device<std::byte>());
    stream_.wait();
    return on_host_.as<float>();
  }
  /// Compares the result of fetch_gradients().
  void expect_fetched(double tolerance, double factor = 1) {
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

  /// Compares a loss.
  void expect_loss(double found, double wanted, double tolerance) const {
    expect_below(tolerance, std::abs(found - wanted) / std::abs(wanted), "loss");
  }

  Reference& reference() { return reference_; }
  Executor& executor() { return *executor_; }
  runtime::Stream& stream() { return stream_; }
  [[nodiscard]] runtime::DeviceSpan<float> parameters() const { return parameters_.on_device<float>(); }
  [[nodiscard]] runtime::DeviceSpan<float> gradients() const { return gradients_.on_device<float>(); }
  [[nodiscard]] optim::cuda::Copy weights() const {
    if (options_.precision == Precision::bf16) return weights_.on_device<core::bfloat16>();
    if (options_.precision == Precision::f16) return weights_.on_device<core::float16>();
    return {};
  }

  /// Samples as pixels, for a network that takes them.
  std::vector<std::uint8_t> pixels{};
  std::optional<data::Images> images{};

  static constexpr float f16_scale = std::bit_cast<float>(0x42424242U);  ///< of the loss: 48.6
  std::function<void(runtime::DeviceSpan<double>, runtime::Stream&)> on_sum{};
  std::string walked{};  ///< what passes have reported of units, as in WalkCase

 private:
  void expect_below(double tolerance, double error, const std::string& of) const {
    const char* const precision = options_.precision == Precision::f32    ? "f32"
                                  : options_.precision == Precision::bf16 ? "bf16"
                                                                          : "f16";
    EXPECT_TRUE(test::note_error(fmt::format("{} {} {}", precision, tested_.name, of), error, tolerance))
        << of << " is off by " << error << ", more than " << tolerance;
  }
  [[nodiscard]] data::Batch batch() const {
    data::Batch batch{
        .n = tested_.batch.n,
        .x = tested_.batch.ids.empty() ? std::as_bytes(std::span{x_}) : std::as_bytes(std::span{tested_.batch.ids}),
        .y = targets_.empty() ? std::as_bytes(std::span{tested_.batch.classes}) : std::as_bytes(std::span{targets_}),
        .ids = ids_,
        .images = images};
    if (images) batch.x = std::as_bytes(std::span{pixels});
    return batch;
  }
  [[nodiscard]] const ArenaSlot& slot_of(std::size_t parameter) const {
    const auto slots = executor_->slots();
    return *std::ranges::find(slots, static_cast<int>(parameter), &ArenaSlot::parameter);
  }
  /// Packing the logical values again gives the same elements.
  bool has_zero_padding(std::size_t parameter, const ArenaSlot& slot, std::span<const float> logical,
                        std::span<const float> elements) const {
    std::vector<float> again(elements.size(), 1);
    executor_->pack(static_cast<int>(parameter), slot.all_rows(), logical, again);
    return std::ranges::equal(again, elements);
  }
  void touched(std::size_t, std::span<const std::uint64_t>) override {}
  void ready(std::size_t slot) override { EXPECT_EQ(slot, n_ready_++); }
  void sum(runtime::DeviceSpan<double> values, runtime::Stream& stream) override { on_sum(values, stream); }
  void need(std::size_t unit, runtime::Stream&) override { walked += fmt::format("+{} ", unit); }
  void done(std::size_t unit, runtime::Stream&) override { walked += fmt::format("-{} ", unit); }
  static const ExecutorOptions& joined(ExecutorOptions& options, bool is_group_of_ranks, const PlaceParameters& place) {
    options.is_group_of_ranks = is_group_of_ranks;
    options.place = place;
    return options;
  }

  std::unique_ptr<Convolutions> convolutions_;
  Case tested_;
  Buffer loss_scale_;
  ExecutorOptions options_;
  std::unique_ptr<Executor> executor_;
  Reference reference_;
  Buffer parameters_, gradients_, weights_, on_host_;
  runtime::Stream stream_{};
  std::vector<float> x_{}, targets_{};
  std::vector<std::uint64_t> ids_{};
  core::StepNumbers numbers_{.epoch = 3};
  std::size_t n_ready_ = 0;
};

}  // namespace lockstep::nn::cuda
