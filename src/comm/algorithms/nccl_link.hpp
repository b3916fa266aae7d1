// A communicator of NCCL, and how it ends.
// Invariant: after an error it is none any more, and nobody waits for what its calls have not done.
// Used by nccl_cuda.cpp; includes NCCL's header, as only files for NCCL do.
#pragma once

#include <nccl.h>

#include <exception>
#include <string_view>
#include <thread>

#include "comm/algorithms/nccl_registration.hpp"
#include "core/handle.hpp"

namespace lockstep::comm::nccl {

struct CommunicatorPolicy {
  using Raw = ncclComm_t;
  static Raw null() noexcept { return nullptr; }
  // Whoever leaves by an error must not wait for the others.
  static void destroy(Raw raw) noexcept {
    static_cast<void>(std::uncaught_exceptions() > 0 ? ncclCommAbort(raw) : ncclCommDestroy(raw));
  }
};

using Communicator = core::UniqueHandle<CommunicatorPolicy>;

/// A communicator, until an error ends it.
class Link {
 public:
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(comm_); }
  [[nodiscard]] ncclComm_t get() const noexcept { return comm_.get(); }
  void connect(ncclComm_t raw) { comm_ = Communicator{raw}; }

  /// Throws core::Error (system) unless the result is a success. Then it has ended, as its kernels may never do so by
  /// themselves, and whatever is freed on the way out waits for them. In another thread: NCCL waits in turn for
  /// recordings that hold calls of it, which go on the way out, too.
  void check(ncclResult_t result, std::string_view what) {
    try {
      nccl::check(result, comm_.get(), what);
    } catch (...) {
      ending_ = std::jthread{[raw = comm_.release()] { static_cast<void>(ncclCommAbort(raw)); }};
      throw;
    }
  }

  /// Returns when it has, after an error; recordings are gone by then.
  void end() noexcept {
    if (ending_.joinable()) ending_.join();
  }

 private:
  Communicator comm_;
  std::jthread ending_;
};

}  // namespace lockstep::comm::nccl
