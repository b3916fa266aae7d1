#include "support/recorder.hpp"
#include "support/test_device.hpp"

namespace lockstep::test {

struct TestDevice::State {
  explicit State(runtime::kernel::ThreadOrder order) : recorder{order} {}
  Recorder recorder;
  UseRecorder use{recorder};
};

TestDevice::TestDevice(runtime::kernel::ThreadOrder order) : state_{std::make_unique<State>(order)} {}
TestDevice::~TestDevice() = default;
bool TestDevice::is_recorder() const noexcept { return true; }
const std::vector<std::string>& TestDevice::complaints() const noexcept { return state_->recorder.complaints(); }
std::vector<std::string> TestDevice::take_lines() { return state_->recorder.take_lines(); }
int TestDevice::n_allocations() const noexcept { return state_->recorder.n_allocations(); }

}  // namespace lockstep::test
