// A communicator of NCCL, and how it ends.
// Invariant: after an error it is none any more, nor is any other of its family, and nobody waits for what their calls
// have not done.
// Used by nccl_cuda.cpp; includes NCCL's header, as only files for NCCL do.
#pragma once

#include <nccl.h>

#include <exception>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "comm/algorithms/nccl_errors.hpp"
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

/// A communicator, until an error ends it. Those whose calls wait for one another are a family.
class Link {
 public:
  using Family = std::shared_ptr<std::vector<Link*>>;

  /// Of another's family(), or of a new one.
  explicit Link(Family family = std::make_shared<std::vector<Link*>>()) : family_{std::move(family)} {
    family_->push_back(this);
  }
  ~Link() { std::erase(*family_, this); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] const Family& family() const noexcept { return family_; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(comm_); }
  [[nodiscard]] ncclComm_t get() const noexcept { return comm_.get(); }
  void connect(ncclComm_t raw) { comm_ = Communicator{raw}; }

  /// Throws core::Error (system) unless the result is a success. Then the family has ended, as its kernels may never do
  /// so by themselves, and whatever is freed on the way out waits for them. In other threads: NCCL waits in turn for
  /// recordings that hold calls of it, which go on the way out, too.
  void check(ncclResult_t result, std::string_view what) {
    try {
      nccl::check(result, comm_.get(), what);
    } catch (...) {
      for (Link* const one : *family_) one->abandon();
      throw;
    }
  }

  /// The same, of what NCCL has noticed by itself of any of the family.
  void check_noticed() {
    for (Link* const one : *family_) {
      if (!*one) continue;
      ncclResult_t noticed = ncclSuccess;
      const ncclResult_t asked = ncclCommGetAsyncError(one->get(), &noticed);
      one->check(asked != ncclSuccess ? asked : noticed, "a collective on GPUs");
    }
  }

  /// Returns when it has, after an error; recordings are gone by then.
  void end() noexcept {
    if (ending_.joinable()) ending_.join();
  }

 private:
  void abandon() {
    if (!comm_) return;
    ending_ = std::jthread{[raw = comm_.release()] { static_cast<void>(ncclCommAbort(raw)); }};
  }

  Family family_;
  Communicator comm_;
  std::jthread ending_;
};

}  // namespace lockstep::comm::nccl
