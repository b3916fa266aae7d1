// The table of layers: one row for each. A layer is a folder beside this file, which CONTRIBUTING.md describes.
// Invariant: a row makes a layer an alternative of Layer, and declares the functions that make it on the host and on
// GPUs (nn/host/layers.hpp, nn/cuda/layers.hpp), which its folder defines. Nothing else lists layers.
// Used by Network, and by the programs of nn/host and nn/cuda.
#pragma once

#include <variant>

#include "nn/ops/add/add.hpp"
#include "nn/ops/batch_norm/batch_norm.hpp"
#include "nn/ops/concat/concat.hpp"
#include "nn/ops/conv/conv.hpp"
#include "nn/ops/dropout/dropout.hpp"
#include "nn/ops/embedding/embedding.hpp"
#include "nn/ops/flatten/flatten.hpp"
#include "nn/ops/global_avg_pool/global_avg_pool.hpp"
#include "nn/ops/input/input.hpp"
#include "nn/ops/layer_norm/layer_norm.hpp"
#include "nn/ops/linear/linear.hpp"
#include "nn/ops/log_softmax/log_softmax.hpp"
#include "nn/ops/max_pool/max_pool.hpp"
#include "nn/ops/relu/relu.hpp"

/// Calls the macro ROW for each kind of layer. It is a macro because rows declare functions, which templates cannot.
#define LOCKSTEP_LAYERS(ROW) \
  ROW(Input)                 \
  ROW(Ids)                   \
  ROW(Linear)                \
  ROW(Conv)                  \
  ROW(BatchNorm)             \
  ROW(Relu)                  \
  ROW(Add)                   \
  ROW(MaxPool)               \
  ROW(GlobalAvgPool)         \
  ROW(Flatten)               \
  ROW(Dropout)               \
  ROW(Embedding)             \
  ROW(Concat)                \
  ROW(LogSoftmax)            \
  ROW(LayerNorm)

namespace lockstep::nn {

template <class First, class... L>
struct LayerRows {
  using Layer = std::variant<L...>;
};

#define LOCKSTEP_ALTERNATIVE(L) , L
using Layer = LayerRows<void LOCKSTEP_LAYERS(LOCKSTEP_ALTERNATIVE)>::Layer;
#undef LOCKSTEP_ALTERNATIVE

[[nodiscard]] inline const LayerTraits& traits(const Layer& layer) {
  return std::visit([]<class L>(const L&) -> const LayerTraits& { return L::traits; }, layer);
}

}  // namespace lockstep::nn
