// Questions that may never be answered, such as those to a file server that is gone.
// Invariant: the asker continues after its limit; the thread that is left behind holds only what it owns.
// Used by all code that touches a file system or a name service.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/timer.hpp"
#include "core/units.hpp"

namespace lockstep::training::doctor {

template <class Answer>
class Asked {
 public:
  /// Starts `question` in a separate thread. It must own what it uses, and make no MPI call.
  explicit Asked(std::function<Answer()> question) {
    auto promise = std::make_shared<std::promise<Answer>>();
    answer_ = promise->get_future();
    std::thread{[promise, question = std::move(question)] {
      try {
        promise->set_value(question());
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    }}.detach();
  }

  /// Callable once: returns, or throws, the result of the question; nothing if it takes longer than `limit`, counted
  /// from its start. A process can still end, unless its thread is in an uninterruptible wait of the kernel.
  [[nodiscard]] std::optional<Answer> within(core::Seconds limit) {
    const std::chrono::duration<double> left{limit.value - since_.elapsed().value};
    if (answer_.wait_for(left) != std::future_status::ready) return std::nullopt;
    return answer_.get();
  }

 private:
  core::Stopwatch since_{};
  std::future<Answer> answer_{};
};

}  // namespace lockstep::training::doctor
