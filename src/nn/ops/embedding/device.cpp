#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "core/error.hpp"
#include "nn/cuda/layers.hpp"
#include "nn/ops/embedding/kernels.hpp"

namespace lockstep::nn::cuda {
namespace {

/// Rows of a table. The host sorts a batch's ids, so that each row of the gradient has one owner.
template <class T>
class EmbeddingLayer final : public CudaLayer<T> {
 public:
  EmbeddingLayer(const Planned<T>& planned, const Embedding& layer)
      : node_{planned.node},
        layer_{layer},
        lookups_{layer.lookups(planned.builder.network.shape(node_.inputs[0])[0])},
        n_{static_cast<std::size_t>(planned.builder.n * lookups_.n)},
        width_{planned.builder.values[planned.index].padded_channels},
        table_{planned.builder.weight(node_.parameters[0])},
        has_bad_id_{planned.builder.arrays.has_bad_label},
        slot_{planned.builder.parameters.slots().number(node_.parameters[0])} {
    Builder<T>& builder = planned.builder;
    this->output_ = builder.make_value(builder.values[planned.index]);
    adds_rows_ = std::ranges::count(builder.options.row_gradients, node_.parameters[0]) > 0;
    core::require(!adds_rows_ || builder.network.n_readers(node_.parameters[0]) == 1,
                  "a table with row gradients has one reader");
    is_training_ = builder.is_training;
    if (!is_training_) return;
    const core::Bytes size{n_ * (sizeof(std::uint64_t) + sizeof(std::uint32_t))};
    for (Sorted& sorted : sorted_) sorted.rows = runtime::Buffer{size, runtime::Memory::pinned};
    on_device_ = builder.template make<std::byte>(size.value);
    builder.memory.use(on_device_, 0);  // sent before all layers run
    rows_.resize(n_);
    order_.resize(n_);
  }

  void send(PassContext& pass) override {
    if (!is_training_) return;
    for (std::size_t i = 0; i < n_; ++i)
      rows_[i] = static_cast<std::uint64_t>(pass.batch.x_ids_on_host[lookups_.first + i * lookups_.step]);
    std::iota(order_.begin(), order_.end(), 0U);
    std::ranges::stable_sort(order_, {}, [&](std::uint32_t i) { return rows_[i]; });
    Sorted& sorted = sorted_[n_sent_++ % sorted_.size()];
    sorted.sent.wait();
    std::byte* to = sorted.rows.bytes().data();
    for (std::size_t i = 0; i < n_; ++i)
      std::memcpy(to + i * sizeof(std::uint64_t), &rows_[order_[i]], sizeof(std::uint64_t));
    std::memcpy(to + n_ * sizeof(std::uint64_t), order_.data(), n_ * sizeof(std::uint32_t));
    pass.stream.copy(runtime::DeviceSpan<std::byte>::at(on_device_, sorted.rows.bytes().size()), sorted.rows.bytes());
    sorted.sent = pass.stream.mark();
  }

  void forward(PassContext& pass) override {
    enqueue(pass.stream, GatherRows<T>{n_, width_, static_cast<std::size_t>(layer_.n_rows), table_, pass.batch.x_ids,
                                       static_cast<std::size_t>(lookups_.step),
                                       static_cast<std::size_t>(lookups_.first), this->output_, has_bad_id_});
    if (is_training_ && adds_rows_) pass.hooks->touched(slot_, rows_);
  }

  std::vector<Place<T>> plan_backward(Builder<T>& builder, std::span<const Place<T>> gradients) override {
    gradient_ = gradients[0];
    builder.use(on_device_);
    table_gradient_ = builder.gradient(node_.parameters[0]);
    fills_ = !adds_rows_ && !builder.adds_to_gradient(node_.parameters[0]);
    return {Place<T>{}};
  }

  void backward(PassContext& pass) override {
    const auto n_rows = static_cast<std::size_t>(layer_.n_rows);
    if (fills_ && !pass.adds) {
      auto* const bytes = reinterpret_cast<std::byte*>(table_gradient_);
      pass.stream.fill(runtime::DeviceSpan<std::byte>::at(bytes, n_rows * width_ * sizeof(float)), std::byte{0});
    }
    const std::byte* const sorted = on_device_;
    enqueue(pass.stream, AddSegments<T>{n_, width_, n_rows, reinterpret_cast<const std::uint64_t*>(sorted),
                                        reinterpret_cast<const std::uint32_t*>(sorted + n_ * sizeof(std::uint64_t)),
                                        gradient_, table_gradient_});
  }

 private:
  const Node& node_;
  Embedding layer_;
  Embedding::Lookups lookups_;
  std::size_t n_;  ///< ids that it looks up
  std::size_t width_;
  const T* table_;
  std::uint32_t* has_bad_id_;
  std::size_t slot_;
  bool adds_rows_ = false;
  bool fills_ = false;  ///< the gradient with zeros at first
  bool is_training_ = false;
  struct Sorted {
    runtime::Buffer rows{};  ///< ascending, then the places of their ids
    runtime::Event sent{};
  };
  std::array<Sorted, 2> sorted_{};  ///< in turn, because a step may be enqueued before the previous one has finished
  std::size_t n_sent_ = 0;
  Place<std::byte> on_device_{};
  std::vector<std::uint64_t> rows_{};
  std::vector<std::uint32_t> order_{};
  Place<T> gradient_{};
  float* table_gradient_ = nullptr;
};
}  // namespace

template <class T>
std::unique_ptr<CudaLayer<T>> make_layer(const Planned<T>& planned, const Embedding& layer) {
  return std::make_unique<EmbeddingLayer<T>>(planned, layer);
}
LOCKSTEP_FOR_DEVICE_TYPES(Embedding)

}  // namespace lockstep::nn::cuda
