#include "support/test_device.hpp"

namespace lockstep::test {

// main() has put a GPU in use.
struct TestDevice::State {
  std::vector<std::string> none{};
};

TestDevice::TestDevice(runtime::kernel::ThreadOrder) : state_{std::make_unique<State>()} {}
TestDevice::~TestDevice() = default;
bool TestDevice::is_recorder() const noexcept { return false; }
const std::vector<std::string>& TestDevice::complaints() const noexcept { return state_->none; }
std::vector<std::string> TestDevice::take_lines() { return {}; }
int TestDevice::n_allocations() const noexcept { return 0; }

}  // namespace lockstep::test
