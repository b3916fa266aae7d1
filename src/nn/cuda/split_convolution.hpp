// Products with an epilogue as two operations: the plain product, and a kernel of ours.
// Invariant: adds up what a plain product gives, rounded to its type.
// Used by implementations of Convolutions, where they have nothing faster.
#pragma once

#include <memory>

#include "nn/cuda/convolution.hpp"

namespace lockstep::nn::cuda {

/// `plain`: of the same product without its epilogue.
[[nodiscard]] std::unique_ptr<Convolution> make_split(const Product& product, core::DType type,
                                                      std::unique_ptr<Convolution> plain);

}  // namespace lockstep::nn::cuda
