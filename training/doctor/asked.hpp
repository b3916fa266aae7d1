// Questions that may never be answered, such as those to a file server that is gone.
// Invariant: the asker goes on after its limit; the thread that is left behind holds nothing but what it owns.
// Used by all that touches a file system or a name service.
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
  /// Starts `question` on a thread of its own. It must own what it uses, and make no call of MPI.
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

  /// Once: what it returns or throws; nothing if that takes longer than `limit`, counted from when it was asked. A
  /// process can end meanwhile, unless its thread waits for what the kernel lets nobody interrupt.
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
