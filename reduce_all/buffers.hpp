// The memory that a call reads and writes, according to --buffers and --in-place.
// Invariant: one allocation for the whole run, of the largest size; every copy starts on a cache line.
// Used by the measuring loop.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "comm/collective.hpp"
#include "comm/device_plan.hpp"
#include "core/units.hpp"
#include "reduce_all/options.hpp"
#include "runtime/device.hpp"

namespace lockstep::reduce_all {

/// The buffers of a plan, in the memory of the device in use. In place they overlap as comm::Plan::bind() says.
struct CallBuffers {
  runtime::DeviceSpan<std::byte> input;
  runtime::DeviceSpan<std::byte> output;
};

class BufferPool {
 public:
  /// For calls of up to `largest` bytes. `cache`: cold buffers must not be in it; `registration`: the kind that
  /// register_with() requests.
  BufferPool(core::Bytes largest, BufferMode mode, bool in_place, core::Bytes cache,
             comm::Registration registration = comm::Registration::none);

  /// The memory that such a pool needs.
  [[nodiscard]] static core::Bytes footprint(core::Bytes largest, BufferMode mode, core::Bytes cache);

  /// Collective: registers the pool with a group that supports it, once, while the pool lives; the group must outlive
  /// it. Throws core::Error (system) if the group refuses.
  void register_with(comm::DeviceGroup& group);

  /// The buffers of `call`: always the same, except with BufferMode::cold. Then it is the least recently used copy, and
  /// there are enough copies to exceed twice the last-level cache.
  [[nodiscard]] CallBuffers next(const comm::Call& call, int rank, int n_ranks);
  /// Two separate buffers of the call's whole size, also in rotation, for the copy probe.
  [[nodiscard]] CallBuffers next_pair(std::size_t bytes);

  [[nodiscard]] core::Bytes cache() const noexcept { return cache_; }

 private:
  std::size_t rotate(std::size_t bytes);

  BufferMode mode_;
  bool in_place_;
  core::Bytes cache_;
  std::size_t pool_bytes_;
  std::size_t position_ = 0;
  comm::Registration registration_;
  runtime::Buffer first_;
  runtime::Buffer second_;
  std::map<const comm::DeviceGroup*, std::vector<std::unique_ptr<comm::Registered>>> known_to_{};
};

}  // namespace lockstep::reduce_all
