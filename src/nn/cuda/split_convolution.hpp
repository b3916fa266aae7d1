// Products with an epilogue as two operations: the plain product, and our own kernel.
// Invariant: the kernel uses the plain product's result, rounded to its type.
// Used by implementations of Convolutions that have nothing faster.
#pragma once

#include <memory>

#include "nn/cuda/convolution.hpp"

namespace lockstep::nn::cuda {

/// `plain` computes the same product without its epilogue.
[[nodiscard]] std::unique_ptr<Convolution> make_split(const Product& product, core::DType type,
                                                      std::unique_ptr<Convolution> plain);

}  // namespace lockstep::nn::cuda
