// Work that may never end, such as a question to a file server that is gone.
// Invariant: the caller goes on after the limit; the thread that is left behind holds nothing but what it owns.
// Used by all checks that touch a file system or a name service.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/units.hpp"

namespace lockstep::training::doctor {

/// What `work` returns or throws; nothing if that takes longer than `limit`. `work` must own what it uses, and make no
/// call of MPI. A process ends while such a thread waits, unless the kernel lets nobody interrupt that.
template <class Result>
[[nodiscard]] std::optional<Result> within(core::Seconds limit, std::function<Result()> work) {
  auto promise = std::make_shared<std::promise<Result>>();
  std::future<Result> result = promise->get_future();
  std::thread{[promise, work = std::move(work)] {
    try {
      promise->set_value(work());
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }}.detach();
  if (result.wait_for(std::chrono::duration<double>{limit.value}) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace lockstep::training::doctor
