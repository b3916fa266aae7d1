// The device under test, and what computes products on it: chosen when the program is linked.
// Invariant: a device is in use while a TestDevice lives.
// Used by tests of optim/cuda and nn/cuda; implemented by test_device_recorder.cpp, and in tests/gpu by
// test_device_opened.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/kernel/team.hpp"

namespace lockstep::test {

class TestDevice {
 public:
  /// Threads run in that order if it can be chosen.
  explicit TestDevice(runtime::kernel::ThreadOrder order = runtime::kernel::ThreadOrder::shuffled);
  ~TestDevice();
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  /// Whether it reports its operations; otherwise the members below are useless.
  [[nodiscard]] bool is_recorder() const noexcept;
  // As in recorder.hpp.
  [[nodiscard]] const std::vector<std::string>& complaints() const noexcept;
  [[nodiscard]] std::vector<std::string> take_lines();
  [[nodiscard]] int n_allocations() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::test
