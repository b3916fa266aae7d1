// Writes and checks test data in the memory of the vectors: by the host, or by kernels of a device.
// Invariant: both give the same result; each member returns when it is done, so timings contain none of it.
// Used by the measuring loop.
#pragma once

#include <cstddef>
#include <span>

#include "comm/collective.hpp"
#include "core/units.hpp"
#include "reduce_all/verify.hpp"
#include "runtime/device.hpp"
#include "runtime/kernel/pattern.hpp"

namespace lockstep::reduce_all {

class Checker {
 public:
  /// For the vectors of one call.
  explicit Checker(const comm::Call& call);

  /// The device memory that this needs for calls of up to `largest`.
  [[nodiscard]] static core::Bytes footprint(core::Bytes largest);

  // As in TestData.
  void fill(runtime::DeviceSpan<std::byte> input, const TestData& data);
  void poison(runtime::DeviceSpan<std::byte> output, const TestData& data);
  [[nodiscard]] Mismatch check(runtime::DeviceSpan<const std::byte> output, const TestData& data);

  /// Flips the lowest bit of the byte.
  void flip_bit(runtime::DeviceSpan<std::byte> output, std::size_t at);

 private:
  [[nodiscard]] runtime::DeviceSpan<const std::byte> send(std::span<const std::byte> tile,
                                                          runtime::DeviceSpan<const std::byte> where);
  [[nodiscard]] Mismatch compare(runtime::DeviceSpan<const std::byte> found, std::span<const std::byte> tile);

  bool is_on_host_ = runtime::is_host_the_device();
  std::size_t element_size_;
  // Buffers of the device, and for transfers; empty if the host is the device.
  runtime::Buffer tile_, partials_, result_;
  runtime::Buffer tile_here_, result_here_;
  runtime::Stream stream_{};
};

}  // namespace lockstep::reduce_all
