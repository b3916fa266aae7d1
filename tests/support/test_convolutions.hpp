// Computes products on the device under test, with their accuracy.
// Invariant: for the device of test_device.hpp.
// Used by tests of nn/cuda; implemented by test_convolutions_plain.cpp and tests/gpu/test_convolutions_cudnn.cpp.
#pragma once

#include <memory>

#include "nn/cuda/convolution.hpp"

namespace lockstep::test {

/// `fuses`: epilogues are parts of their products.
[[nodiscard]] std::unique_ptr<nn::cuda::Convolutions> make_convolutions(bool fuses = false);

/// The tolerance of results in float32, given that exact products differ by at most `exact`.
[[nodiscard]] double tolerance_in_f32(double exact);

}  // namespace lockstep::test
