#include "support/plain_convolutions.hpp"
#include "support/test_convolutions.hpp"

namespace lockstep::test {

std::unique_ptr<nn::cuda::Convolutions> make_convolutions(bool fuses) {
  return std::make_unique<PlainConvolutions>(fuses);
}

double tolerance_in_f32(double exact) { return exact; }

}  // namespace lockstep::test
