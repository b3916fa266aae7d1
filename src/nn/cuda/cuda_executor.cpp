#include "nn/cuda/cuda_executor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "nn/cuda/batch_sender.hpp"
#include "nn/cuda/kernels/samples.hpp"
#include "nn/cuda/program.hpp"
#include "nn/ops/batch_norm/device_ranks.hpp"
#include "nn/plan/empty_pass.hpp"
#include "nn/plan/planned_executor.hpp"
#include "runtime/kernel/numbers.hpp"

namespace lockstep::nn::cuda {
namespace {

using runtime::Buffer;
using runtime::DeviceSpan;
using runtime::Memory;

/// Memory of equal size on the host and on the device, with copies between them.
class Mirror {
 public:
  Mirror() = default;
  explicit Mirror(std::size_t n_bytes)
      : host_{core::Bytes{n_bytes}, Memory::pinned}, device_{core::Bytes{n_bytes}, Memory::device} {}
  [[nodiscard]] std::span<std::byte> host() const { return host_.bytes(); }
  template <class T>
  [[nodiscard]] T* device() const {
    return device_.on_device<T>().data();
  }
  /// Sends the first `n_bytes`.
  void send(runtime::Stream& stream, std::size_t n_bytes) const {
    stream.copy(DeviceSpan<std::byte>::at(device<std::byte>(), n_bytes), host().first(n_bytes));
  }
  void fetch(runtime::Stream& stream) const { stream.copy(host(), device_.on_device<std::byte>()); }
  [[nodiscard]] std::size_t n_bytes() const { return host().size(); }

 private:
  Buffer host_{};
  Buffer device_{};
};

struct Results {
  LossTotals totals;
  std::uint32_t has_bad_label;
};

template <class T>
class CudaExecutor final : public PlannedExecutor {
 public:
  CudaExecutor(const Network& network, const ExecutorOptions& options, Convolutions& convolutions)
      : PlannedExecutor{network, options}, convolutions_{convolutions}, parameters_{network_, plan_, options.place} {
    const auto n = static_cast<std::size_t>(options.max_batch);
    batches_ = BatchSender{{.y = n * y_bytes_,
                            .ids = n * sizeof(std::uint64_t),
                            .views = has_pixels_ ? n * sizeof(data::ImageView) : 0,
                            .levels = has_pixels_ ? n_levels() * sizeof(float) : 0,
                            .x = n * x_bytes_}};
    numbers_ = Buffer{core::Bytes{sizeof(core::StepNumbers)}, Memory::device};
    results_ = Mirror{sizeof(Results)};
    for (Ended& ended : ended_) ended.results = Buffer{core::Bytes{sizeof(Results)}, Memory::pinned};
    for (const Statistic& statistic : network_.statistics()) {
      statistics_.push_back({n_statistics_, statistic.n_channels});
      n_statistics_ += (statistic.n_channels + 7) / 8 * 8;
    }
    all_statistics_ = Mirror{n_statistics_ * sizeof(float)};
    kept_statistics_ = Buffer{core::Bytes{n_statistics_ * sizeof(float)}, Memory::device};
    for (std::size_t i = 0; i < statistics_.size(); ++i) {
      std::ranges::fill(statistics_[i].of(statistics_here()), network_.statistics()[i].initial);
      arrays_.statistics.push_back(all_statistics_.device<float>() + statistics_[i].offset);
    }
    arrays_.places = places();
    arrays_.has_bad_label = &results_.device<Results>()->has_bad_label;
    if (options_.is_group_of_ranks) {
      empty_ = EmptyRank{network_};
      arrays_.shared = empty_.shared();
    }
    convolutions_.choose(products_of(network_, options_.max_batch), dtype_of<T>(), options_);
    arena_.expect(make_program(nullptr, options.max_batch, true)->n_bytes());
  }

  [[nodiscard]] core::DType weights_type() const noexcept override { return dtype_of<T>(); }

  void scale_loss(DeviceSpan<const float> scale) override {
    core::require(programs_.empty() && scale.size() == 1,
                  "scale_loss() comes before the first pass and sets one number");
    arrays_.loss_scale = scale.data();
  }

  [[nodiscard]] std::span<float> statistic(int statistic) override {
    if (!are_statistics_here_ && stream_ != nullptr) {
      all_statistics_.fetch(*stream_);
      stream_->wait();
    }
    are_statistics_here_ = true;
    return statistics_.at(static_cast<std::size_t>(statistic)).of(statistics_here());
  }
  [[nodiscard]] DeviceStatistics device_statistics() noexcept override {
    return {DeviceSpan<float>::at(all_statistics_.device<float>(), n_statistics_), kept_statistics_.on_device<float>()};
  }

  void enqueue(const data::Batch& batch, Pass pass, const core::StepNumbers& numbers, Hooks& hooks,
               runtime::Stream& stream) override {
    const bool is_forward = pass == Pass::evaluation || pass == Pass::forward;
    if (is_forward) check(batch, fits_input(batch));
    core::require(is_forward || program_ != nullptr || n_ == 0, "a backward pass follows a forward pass in training");
    send_numbers(numbers, stream);
    if (is_forward) send(batch, stream);
    PassContext context = context_of(stream, hooks);
    context.adds = pass == Pass::backward_adding;
    if (is_forward)
      forward(context, batch, pass == Pass::forward);
    else
      backward(context);
  }

  void send(const data::Batch& batch, const core::StepNumbers& numbers, Hooks& hooks,
            runtime::Stream& stream) override {
    check(batch, fits_input(batch));
    core::require(batch.n > 0, "a batch to send has samples");
    send_numbers(numbers, stream);
    send(batch, stream);
    const auto size = std::pair{on_device_.images.height, on_device_.images.width};
    core::require(size_of_sent_.value_or(size) == size, "all images that are sent have one size");
    size_of_sent_ = size;
    n_ = batch.n;
    program_ = &program_of(n_, true);
    PassContext context = context_of(stream, hooks);
    program_->send(context);
  }

  void enqueue_sent(Pass backward, Hooks& hooks, runtime::Stream& stream) override {
    core::require(program_ != nullptr && !times_.is_profiling(),
                  "enqueue_sent() follows send(), and layers are not timed");
    PassContext context = context_of(stream, hooks);
    context.adds = backward == Pass::backward_adding;
    program_->forward(context, &results_.device<Results>()->totals, times_, true);
    program_->backward(context, times_);
  }

  [[nodiscard]] LossSums sums() override {
    if (stream_ == nullptr || results_are_new_) return {};
    results_.fetch(*stream_);
    stream_->wait();
    results_are_new_ = true;
    return sums_of(results_.host());
  }

  void end_sums(runtime::Stream& stream) override {
    core::require(n_ended_ - n_asked_ < ended_.size(), "at most two steps have sums that were not requested");
    send_what_is_new(stream);  // after a step without samples
    Ended& ended = ended_[n_ended_++ % ended_.size()];
    stream.copy(ended.results.bytes(), DeviceSpan<const std::byte>::at(results_.device<std::byte>(), sizeof(Results)));
    ended.copied = stream.mark();
    results_are_new_ = true;
  }

  [[nodiscard]] LossSums ended_sums() override {
    core::require(n_asked_ < n_ended_, "ended_sums() follows end_sums()");
    const Ended& ended = ended_[n_asked_++ % ended_.size()];
    ended.copied.wait();
    return sums_of(ended.results.bytes());
  }

  [[nodiscard]] std::vector<std::string> slow_layers() const override { return {}; }
  [[nodiscard]] bool computes_in_floats() const override { return false; }
  [[nodiscard]] std::size_t n_bytes() const noexcept override {
    std::size_t n = arena_.n_bytes() + empty_.n_bytes() + batches_.n_bytes();
    for (const Mirror* mirror : {&results_, &all_statistics_}) n += mirror->n_bytes();
    return n + all_statistics_.n_bytes() + sizeof(core::StepNumbers);  // kept ones, and a step's numbers
  }

 private:
  struct Ended {
    Buffer results{};
    runtime::Event copied{};
  };

  [[nodiscard]] const SlotLayout& layout() const noexcept override { return parameters_; }

  static LossSums sums_of(std::span<const std::byte> from) {
    Results results{};
    std::memcpy(&results, from.data(), sizeof results);
    if (results.has_bad_label != 0)
      core::fail_usage({.what = "a label or id of the batch is outside the network's range",
                        .where = "the data set",
                        .expected = "classes and ids from 0 up to the number that the network has",
                        .fix = "run lockstep shard verify on the set"});
    const LossTotals& totals = results.totals;
    return {.loss = totals.loss, .n = totals.n, .n_top1 = totals.n_top1, .n_top5 = totals.n_top5};
  }

  [[nodiscard]] std::span<float> statistics_here() const {
    return {reinterpret_cast<float*>(all_statistics_.host().data()), n_statistics_};
  }

  /// The number of levels of all channels of the network's input.
  [[nodiscard]] std::size_t n_levels() const { return network_.nodes().front().output[0] * LookUpPixels<T>::n_levels; }
  /// Whether samples are as many numbers as the network's input has; or images of at most as many pixels.
  [[nodiscard]] bool fits_input(const data::Batch& batch) const {
    if (!has_pixels_) return batch.x.size() == batch.n * x_bytes_;
    if (batch.n == 0) return true;
    if (!batch.images || batch.images->views.size() != batch.n || batch.images->levels.size() != n_levels())
      return false;
    const auto height = static_cast<std::size_t>(batch.images->height);
    const auto width = static_cast<std::size_t>(batch.images->width);
    const std::size_t of_sample = height * width * network_.nodes().front().output[0];
    return of_sample <= x_bytes_ && batch.x.size() == batch.n * of_sample;
  }

  void send_what_is_new(runtime::Stream& stream) {
    if (results_are_new_) {
      stream.fill(DeviceSpan<std::byte>::at(results_.device<std::byte>(), sizeof(Results)), std::byte{0});
      results_are_new_ = false;
    }
    if (!are_statistics_here_) return;
    all_statistics_.send(stream, all_statistics_.n_bytes());
    stream.copy(kept_statistics_.on_device<std::byte>(),
                DeviceSpan<const std::byte>::at(all_statistics_.device<std::byte>(), all_statistics_.n_bytes()));
    are_statistics_here_ = false;
  }

  [[nodiscard]] std::unique_ptr<Program<T>> make_program(SharedArena* memory, std::uint64_t n, bool is_training) {
    return std::make_unique<Program<T>>(Common<T>{network_, options_, plan_, parameters_, arrays_, convolutions_},
                                        memory, n, is_training);
  }

  void send_numbers(const core::StepNumbers& numbers, runtime::Stream& stream) {
    stream_ = &stream;
    runtime::kernel::put(stream, numbers_.on_device<core::StepNumbers>(), numbers);
    send_what_is_new(stream);
  }

  // The context of a pass on the batch that was sent last.
  [[nodiscard]] PassContext context_of(runtime::Stream& stream, Hooks& hooks) {
    return {.stream = stream,
            .beside = times_.is_profiling() ? nullptr : &beside_,
            .batch = on_device_,
            .numbers = numbers_.on_device<core::StepNumbers>().data(),
            .hooks = &hooks};
  }

  void send(const data::Batch& batch, runtime::Stream& stream) {
    const BatchSender::Places at = batches_.send(batch, stream);
    on_device_ = {.ids = reinterpret_cast<const std::uint64_t*>(at.ids)};
    if (has_ids_) {
      on_device_.x_ids = reinterpret_cast<const std::int64_t*>(at.x);
      on_device_.x_ids_on_host = {reinterpret_cast<const std::int64_t*>(at.x_on_host.data()),
                                  at.x_on_host.size() / sizeof(std::int64_t)};
    } else if (has_pixels_) {
      on_device_.images = {.pixels = reinterpret_cast<const std::uint8_t*>(at.x),
                           .views = reinterpret_cast<const data::ImageView*>(at.views),
                           .levels = reinterpret_cast<const float*>(at.levels)};
      if (batch.images) {
        on_device_.images.height = batch.images->height;
        on_device_.images.width = batch.images->width;
      }
    } else {
      on_device_.x = reinterpret_cast<const float*>(at.x);
    }
    if (options_.loss == Loss::mse)
      on_device_.targets = reinterpret_cast<const float*>(at.y);
    else
      on_device_.labels = reinterpret_cast<const std::int64_t*>(at.y);
  }

  [[nodiscard]] Program<T>& program_of(std::uint64_t n, bool is_training) {
    auto& program = programs_[{n, is_training}];
    if (!program) program = make_program(&arena_, n, is_training);
    return *program;
  }

  void forward(PassContext& pass, const data::Batch& batch, bool is_training) {
    n_ = batch.n;
    program_ = nullptr;
    if (n_ == 0) {
      const bool joins = is_training && options_.is_group_of_ranks;
      return forward_without_samples(plan_, parameters_.slots(), *pass.hooks, pass.stream, [&](std::size_t node) {
        if (joins) empty_.forward(pass, network_, node, arrays_.statistics);
      });
    }
    Program<T>& program = program_of(n_, is_training);
    program.send(pass);
    program.forward(pass, &results_.device<Results>()->totals, times_, false);
    if (is_training) program_ = &program;
  }

  void backward(PassContext& pass) {
    if (program_ != nullptr) return program_->backward(pass, times_);
    backward_without_samples(plan_, parameters_.slots(), *pass.hooks, pass.stream, [&](const BackwardStep& step) {
      if (!pass.adds) zero_completed(step, pass.stream);
      if (options_.is_group_of_ranks) empty_.backward(pass, step.node);
    });
  }

  Convolutions& convolutions_;
  ParameterLayout parameters_;
  runtime::Stream beside_{};  ///< PassContext's, unless layers are timed
  BatchSender batches_{};
  Mirror results_{}, all_statistics_{};
  std::array<Ended, 2> ended_{};  ///< of two steps, in turn
  std::size_t n_ended_ = 0;
  std::size_t n_asked_ = 0;  ///< of those
  Buffer numbers_{}, kept_statistics_{};
  std::vector<core::Slice> statistics_{};  ///< of all_statistics_; each begins at a multiple of 32 bytes
  std::size_t n_statistics_ = 0;
  bool are_statistics_here_ = true;  ///< the caller may have changed them
  bool results_are_new_ = true;      ///< nothing was added since they were last read
  ExecutorArrays<T> arrays_{};
  SharedArena arena_{};  ///< of programs
  EmptyRank empty_{};
  std::map<std::pair<std::uint64_t, bool>, std::unique_ptr<Program<T>>> programs_{};
  Program<T>* program_ = nullptr;  ///< of the last forward pass, in training
  std::uint64_t n_ = 0;            ///< its samples
  DeviceBatch on_device_{};
  std::optional<std::pair<int, int>> size_of_sent_{};  ///< of images, in passes that may be recorded
  runtime::Stream* stream_ = nullptr;                  ///< of the last pass
};

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(const Network& network, const ExecutorOptions& options,
                                             Convolutions& convolutions) {
  switch (options.precision) {
    case Precision::bf16: return std::make_unique<CudaExecutor<core::bfloat16>>(network, options, convolutions);
    case Precision::f16: return std::make_unique<CudaExecutor<core::float16>>(network, options, convolutions);
    case Precision::f32: break;
  }
  return std::make_unique<CudaExecutor<float>>(network, options, convolutions);
}

}  // namespace lockstep::nn::cuda
