#include "core/clock.hpp"

#include <chrono>
#include <ctime>
#include <thread>

namespace lockstep::core {
namespace {

std::chrono::duration<double> to_duration(Seconds time) noexcept { return std::chrono::duration<double>{time.value}; }

class RealClock final : public Clock {
 public:
  [[nodiscard]] Seconds now() const noexcept override { return core::now(); }
  [[nodiscard]] std::int64_t date() const noexcept override { return std::time(nullptr); }
  void sleep(Seconds time) const override { std::this_thread::sleep_for(to_duration(time)); }
  void wait(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, Seconds time) const override {
    wake.wait_for(lock, to_duration(time));
  }
};

}  // namespace

const Clock& real_clock() noexcept {
  static const RealClock clock;
  return clock;
}

}  // namespace lockstep::core
