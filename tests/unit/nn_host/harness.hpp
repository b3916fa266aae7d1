// The host executor beside the reference, on the same parameters and samples.
// Invariant: parameters are those of cases.hpp; they and samples are rounded for both to the executor's type.
// Used by the tests of nn/host.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nn/host/host_executor.hpp"
#include "unit/nn/comparison.hpp"

namespace lockstep::nn::host {

/// Samples in the form that an executor takes.
struct Samples {
  Samples(const ReferenceBatch& batch, Precision precision);

  [[nodiscard]] data::Batch batch() const { return batch(0, n); }
  /// Samples [begin, end).
  [[nodiscard]] data::Batch batch(std::uint64_t begin, std::uint64_t end) const;

  std::uint64_t n;
  std::vector<float> numbers{};
  std::vector<std::int64_t> x_ids{};
  std::vector<std::int64_t> classes{};
  std::vector<float> targets{};
  std::vector<std::uint64_t> ids{};  ///< 100, 101, ...
};

/// Elements of a 64-byte aligned arena.
class Arena {
 public:
  explicit Arena(std::size_t n, float value = 0);
  [[nodiscard]] std::span<float> elements() { return {begin_, n_}; }

 private:
  std::vector<float> memory_;
  float* begin_;
  std::size_t n_;
};

class Harness final : public Hooks {
 public:
  explicit Harness(const Case& given);
  Harness(const Case& given, ExecutorOptions options);

  LossSums forward(const data::Batch& batch, bool is_training = true);
  LossSums forward() { return forward(samples.batch()); }
  /// Computes the gradient of `scale` times the loss; checks that slots are reported in order, each once.
  void backward(float scale = 1, bool accumulate = false);
  [[nodiscard]] std::string not_finite() { return executor.inspection()->find_not_finite(); }
  /// The gradient of parameter `i`, in logical order.
  [[nodiscard]] std::vector<float> gradient(std::size_t i);
  /// In `parameters` and `gradients`.
  [[nodiscard]] std::vector<SlotPlace> places();
  [[nodiscard]] std::span<float> slot(std::span<float> arena, std::size_t parameter) const;
  [[nodiscard]] core::Slice rows(std::size_t parameter) const;  ///< all

  /// The reference's results for the whole batch.
  LossSums reference_forward(bool is_training = true);

  /// The largest difference from the reference, relative to the reference's largest element.
  [[nodiscard]] double gradient_error(std::size_t i);

  static constexpr std::uint64_t epoch = 3;

  Case tested;
  ExecutorOptions options;
  Samples samples;
  HostExecutor executor;
  Reference reference;
  Arena parameters, gradients;
  core::StepNumbers numbers{.epoch = epoch};  ///< of the next passes
  runtime::Stream stream{};
  std::function<void(std::span<double> values)> on_sum{};
  std::function<void(std::size_t slot, std::span<const std::uint64_t> rows)> on_touched{};
  std::string walked{};  ///< what passes have reported of units, as in WalkCase

 private:
  void touched(std::size_t slot, std::span<const std::uint64_t> rows) override;
  void ready(std::size_t slot) override;
  void sum(runtime::DeviceSpan<double> values, runtime::Stream&) override;
  void need(std::size_t unit, runtime::Stream&) override { walked += "+" + std::to_string(unit) + " "; }
  void done(std::size_t unit, runtime::Stream&) override { walked += "-" + std::to_string(unit) + " "; }

  std::size_t n_ready_ = 0;
};

/// All precisions.
[[nodiscard]] std::vector<Precision> precisions();

/// Whether oneDNN uses AVX-512 here, for which we have our own changes of layout.
[[nodiscard]] bool has_avx512();

/// One of model_cases(), by name.
[[nodiscard]] Case model_case(const std::string& name);

/// A case of a network that PyTorch has not seen: numbers as input, classes or targets by `loss`.
[[nodiscard]] Case make_case(Network network, std::uint64_t n, Loss loss);
/// The samples [begin, end) of a case.
[[nodiscard]] Case part_of(Case given, std::uint64_t begin, std::uint64_t end);

/// A network with every layer of images, with `n_channels` everywhere that any number is allowed.
[[nodiscard]] Network image_network(std::uint64_t n_channels);

/// Whether two equal executors give the same gradients, bit by bit.
[[nodiscard]] bool repeats_its_bits(const Case& given, const ExecutorOptions& options);

}  // namespace lockstep::nn::host
