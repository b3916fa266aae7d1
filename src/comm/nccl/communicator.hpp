// A communicator of NCCL: how the ranks make it, the memory that is registered with it, and its end.
// Invariant: after an error, no communicator of its family is usable, and no rank waits for their unfinished calls.
// Used by group.cpp and plan.cpp.
#pragma once

#include <nccl.h>

#include <exception>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "comm/device_plan.hpp"
#include "comm/nccl/library.hpp"
#include "comm/transport.hpp"
#include "core/handle.hpp"

namespace lockstep::comm::nccl {

struct CommunicatorPolicy {
  using Raw = ncclComm_t;
  static Raw null() noexcept { return nullptr; }
  // A rank that leaves because of an error must not wait for the others.
  static void destroy(Raw raw) noexcept {
    static_cast<void>(std::uncaught_exceptions() > 0 ? ncclCommAbort(raw) : ncclCommDestroy(raw));
  }
};

using Communicator = core::UniqueHandle<CommunicatorPolicy>;

/// A communicator, until an error ends it. Communicators whose calls wait for one another form a family.
class Link {
 public:
  using Family = std::shared_ptr<std::vector<Link*>>;

  /// Joins the family() of another link, or a new one.
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

  /// Throws core::Error (system) unless the result is a success. The family has then ended, because its kernels may
  /// never finish, and freeing memory waits for them. Other threads end it: NCCL in turn waits for recordings of its
  /// calls, which are freed while the error propagates.
  void check(ncclResult_t result, std::string_view what) {
    try {
      nccl::check(result, comm_.get(), what);
    } catch (...) {
      for (Link* const one : *family_) one->abandon();
      throw;
    }
  }

  /// The same for errors that NCCL has noticed by itself in any communicator of the family.
  void check_noticed() {
    for (Link* const one : *family_) {
      if (!*one) continue;
      ncclResult_t noticed = ncclSuccess;
      const ncclResult_t asked = ncclCommGetAsyncError(one->get(), &noticed);
      one->check(asked != ncclSuccess ? asked : noticed, "a collective on GPUs");
    }
  }

  /// Returns when the communicator has ended, after an error; recordings are gone by then.
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

/// Collective: connects the devices of all ranks in `link`. NCCL then uses the algorithm and the protocol that the
/// row's name contains. The ranks meet through the transport, so no port is opened.
[[nodiscard]] Connection connect(Link& link, std::string_view row, Transport& transport);

/// Collective over the ranks of `whole`: connects the consecutive ranks of `part`.
[[nodiscard]] ncclComm_t split(Link& whole, std::string_view row, const Transport& transport, const Transport& part);

/// Collective: null if NCCL does not support it on this machine for all ranks. `link` must outlive the result.
[[nodiscard]] std::unique_ptr<Registered> register_memory(Link& link, Transport& transport,
                                                          runtime::DeviceSpan<std::byte> memory, Registration how);

}  // namespace lockstep::comm::nccl
