// Plain loops in place of cuDNN, for programs in tests. $LOCKSTEP_MADE_UP_LACK: what the program then claims to lack.
#include <cstdlib>
#include <string_view>

#include "nn/device.hpp"
#include "support/plain_convolutions.hpp"

namespace lockstep::nn {

std::unique_ptr<cuda::Convolutions> cuda::open_convolutions(int /*n_threads*/, bool /*tunes*/) {
  return std::make_unique<test::PlainConvolutions>();
}

std::string_view lacking_for_acceleration() noexcept {
  const char* const lack = std::getenv("LOCKSTEP_MADE_UP_LACK");
  return lack == nullptr ? std::string_view{} : lack;
}

}  // namespace lockstep::nn
