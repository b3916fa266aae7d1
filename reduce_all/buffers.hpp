// The memory a call reads and writes, as --buffers and --in-place want it.
// Invariant: one allocation for the whole run, of the largest size; every copy starts on a cache line.
// Used by the measuring loop.
#pragma once

#include <cstddef>
#include <span>

#include "comm/collective.hpp"
#include "core/units.hpp"
#include "reduce_all/options.hpp"
#include "runtime/device.hpp"

namespace lockstep::reduce_all {

/// What plans are bound to. In place the two overlap as comm::Plan::bind() says.
struct CallBuffers {
  std::span<std::byte> input;
  std::span<std::byte> output;
};

class BufferPool {
 public:
  /// For calls of up to `largest` bytes.
  BufferPool(core::Bytes largest, BufferMode mode, bool in_place);

  /// Bytes such a pool takes.
  [[nodiscard]] static core::Bytes footprint(core::Bytes largest, BufferMode mode);

  /// The buffers of `call`: always the same ones, except with BufferMode::cold, where each answer is the copy used
  /// longest ago of enough copies to exceed twice the last-level cache.
  [[nodiscard]] CallBuffers next(const comm::Call& call, int rank, int n_ranks);
  /// Two separate buffers of the call's whole size, rotated likewise: what the copy probe uses.
  [[nodiscard]] CallBuffers next_pair(std::size_t bytes);

 private:
  std::size_t rotate(std::size_t bytes);

  BufferMode mode_;
  bool in_place_;
  std::size_t pool_bytes_;
  std::size_t position_ = 0;
  runtime::Buffer first_;
  runtime::Buffer second_;
};

}  // namespace lockstep::reduce_all
