#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;

class EmbeddingLayer final : public NodeLayer {
 public:
  EmbeddingLayer(const Planned& planned, const Embedding& layer)
      : NodeLayer{planned}, parameters_{planned.builder.parameters}, layer_{layer} {
    Builder& builder = planned.builder;
    n_columns_ = static_cast<std::size_t>(builder.network.shape(node_.inputs[0])[0]);
    n_ = static_cast<std::size_t>(builder.n * layer.lookups(n_columns_).n);
    width_ = static_cast<std::size_t>(layer.width);
    builder.parameters.choose(node_.parameters[0], plain_desc({static_cast<memory::dim>(layer.n_rows),
                                                               static_cast<memory::dim>(layer.width)}));
    table_ = builder.parameter(node_.parameters[0]).place;
    adds_rows_ = std::ranges::count(builder.options.row_gradients, node_.parameters[0]) > 0;
    core::require(!adds_rows_ || builder.network.n_readers(node_.parameters[0]) == 1,
                  "a table with row gradients has one reader");
    tells_rows_ = adds_rows_ && builder.is_training;
    rows_ = builder.make_bytes(n_ * sizeof(std::uint64_t));
    output_ = builder.make(builder.samples(node_.output));
  }

  void forward(PassContext& pass) override {
    find_rows();
    const auto* const table = storage_.at<const float>(table_);
    const auto* const rows = storage_.at<const std::uint64_t>(rows_);
    if (tells_rows_ && !pass.is_repeated())
      pass.hooks->touched(parameters_.slots().number(node_.parameters[0]), {rows, n_});
    with_type(output_, [&]<class T>(T) {
      auto* const out = storage_.at<T>(output_.place);
      for_parts(n_, least_elements / width_ + 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
          loops().of<T>().from_floats(table + rows[i] * width_, out + i * width_, width_);
      });
    });
  }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    gradient_ = builder.use(gradients[0]).place;
    storage_.use(rows_, builder.time);
    table_gradient_ = builder.gradient(node_.parameters[0]).place;
    fills_ = !adds_rows_ && !builder.adds_to_gradient(node_.parameters[0]);
    return {Tensor{}};
  }

  /// Each thread owns rows and adds to them in the order of samples, so sums are the same for any number of threads.
  void backward(PassContext&) override {
    with_type(output_, [&]<class T>(T) { add_rows(storage_.at<const T>(gradient_)); });
  }

 private:
  template <class T>
  void add_rows(const T* gradient) const {
    const auto* const rows = storage_.at<const std::uint64_t>(rows_);
    auto* const table = storage_.at<float>(table_gradient_);
    for_parts(static_cast<std::size_t>(layer_.n_rows), least_elements / width_ + 1,
              [&](std::size_t begin, std::size_t end) {
                if (fills_) std::fill(table + begin * width_, table + end * width_, 0.0f);
                for (std::size_t i = 0; i < n_; ++i) {
                  if (rows[i] < begin || rows[i] >= end) continue;
                  loops().of<T>().add_to(table + rows[i] * width_, gradient + i * width_, width_);
                }
              });
  }

  /// Keeps the rows for the backward pass; fails for ids out of range.
  void find_rows() const {
    const auto* const ids = storage_.at<const std::int64_t>(input_.place);
    auto* const rows = storage_.at<std::uint64_t>(rows_);
    const Embedding::Lookups lookups = layer_.lookups(n_columns_);
    for (std::size_t i = 0; i < n_; ++i) {
      const auto at = static_cast<std::size_t>(lookups.first + i * lookups.step);
      rows[i] = static_cast<std::uint64_t>(ids[at]);
      if (rows[i] >= layer_.n_rows) {
        core::fail_usage({.what = fmt::format("id {} in column {} of the data", ids[at], at % n_columns_),
                          .where = fmt::format("layer '{}'", node_.name),
                          .expected = fmt::format("ids from 0 to {}", layer_.n_rows - 1),
                          .fix = "use tables with as many rows as the data has ids"});
      }
    }
  }

  const ParameterLayout& parameters_;
  Embedding layer_;
  std::size_t n_ = 0;  ///< ids that it looks up
  std::size_t width_ = 0, n_columns_ = 0;
  bool adds_rows_ = false;  ///< to zeros that are already there
  bool tells_rows_ = false;
  bool fills_ = false;  ///< the gradient with zeros at first
  Place table_{}, rows_{}, gradient_{}, table_gradient_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const Embedding& layer) {
  return std::make_unique<EmbeddingLayer>(planned, layer);
}

}  // namespace lockstep::nn::host
