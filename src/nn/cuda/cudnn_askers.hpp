// Threads in which cuDNN makes plans while others are timed.
// Invariant: a cuDNN handle belongs to one thread.
// Used by cudnn_convolutions.cpp: includes headers of cuDNN.
#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "nn/cuda/cudnn_search.hpp"

namespace lockstep::nn::cuda {

struct CudnnHandlePolicy {
  using Raw = cudnnHandle_t;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { cudnnDestroy(raw); }
};

using CudnnHandle = core::UniqueHandle<CudnnHandlePolicy>;

inline void check_cuda(cudaError_t status) {
  if (status != cudaSuccess)
    core::fail_system(fmt::format("CUDA does not report its GPU: {}", cudaGetErrorString(status)));
}

inline CudnnHandle open_handle() {
  cudnnHandle_t raw = nullptr;
  check(cudnnCreate(&raw), "cannot be opened");
  return CudnnHandle{raw};
}

/// Threads of the host that ask cuDNN for plans while the calling thread times them; some plans are compiled, for a
/// second each. `Plans` have prepare(), and prepare(handle) with a handle that nobody else uses meanwhile. They stay
/// only a few plans per thread ahead, because plans take device memory. A handle outlives what was made with it.
template <class Plans>
class Askers {
 public:
  using Handles = std::deque<CudnnHandle>;

  /// `n_threads` includes the calling one.
  Askers(std::vector<Plans*> all, int n_threads, bool has_gpu, Handles& handles)
      : all_{std::move(all)},
        states_(all_.size()),
        thrown_(all_.size()),
        has_gpu_{has_gpu},
        ahead_{4 * static_cast<std::size_t>(std::max(1, n_threads))},
        handles_{handles} {
    if (has_gpu_) check_cuda(cudaGetDevice(&device_));
    const std::size_t n_others = n_threads > 1 ? static_cast<std::size_t>(n_threads) - 1 : 0;
    for (std::size_t i = 0; i < std::min(n_others, all_.size()); ++i) others_.emplace_back([this] { ask(); });
  }
  /// Plans that nobody has begun are not prepared.
  ~Askers() {
    const std::lock_guard lock{mutex_};
    next_ = all_.size();
    has_room_.notify_all();
  }
  Askers(const Askers&) = delete;
  Askers& operator=(const Askers&) = delete;

  /// Returns when `plans` are prepared, by this thread if no other has begun; rethrows what that threw. Plans must be
  /// waited for in the order of `all`. `on_progress` is called when any are prepared.
  void wait_for(const Plans* plans, const std::function<void()>& on_progress) {
    const auto found = std::ranges::find(all_, plans);
    if (found == all_.end()) return;
    const auto i = static_cast<std::size_t>(found - all_.begin());
    std::unique_lock lock{mutex_};
    timed_ = i;
    has_room_.notify_all();
    if (states_[i] == State::waiting) {
      states_[i] = State::begun;
      lock.unlock();
      return all_[i]->prepare();
    }
    while (states_[i] != State::done) {
      const std::size_t n_done = n_done_;
      changed_.wait(lock, [&] { return n_done_ > n_done; });
      lock.unlock();
      if (on_progress) on_progress();
      lock.lock();
    }
    if (thrown_[i]) std::rethrow_exception(thrown_[i]);
  }

 private:
  enum class State : std::uint8_t { waiting, begun, done };

  void ask() noexcept {
    std::unique_lock lock{mutex_};
    CudnnHandle& handle = handles_.emplace_back();
    while (true) {
      has_room_.wait(lock, [&] { return next_ >= all_.size() || next_ < timed_ + ahead_; });
      if (next_ >= all_.size()) return;
      const std::size_t i = next_++;
      if (states_[i] != State::waiting) continue;
      states_[i] = State::begun;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        if (has_gpu_ && !handle) {
          check_cuda(cudaSetDevice(device_));  // CUDA has a current device per thread
          handle = open_handle();
        }
        all_[i]->prepare(handle.get());
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      thrown_[i] = thrown;
      states_[i] = State::done;
      ++n_done_;
      changed_.notify_one();
    }
  }

  std::vector<Plans*> all_;
  std::vector<State> states_;
  std::vector<std::exception_ptr> thrown_;
  bool has_gpu_;
  std::size_t ahead_;
  Handles& handles_;
  int device_ = 0;
  std::size_t next_ = 0, timed_ = 0, n_done_ = 0;
  std::mutex mutex_{};
  std::condition_variable changed_{}, has_room_{};
  std::vector<std::jthread> others_{};  // last, because they use the other members
};

}  // namespace lockstep::nn::cuda
