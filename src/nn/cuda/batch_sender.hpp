// Copies batches to a device while it computes with the previous one.
// Invariant: passes read from one place, in the order of their stream; the host continues as soon as a batch is sent,
// and waits only for the copy of the batch two before.
// Used by the executor of nn/cuda.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "data/load/batch.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

class BatchSender {
 public:
  /// The greatest size of each part of a batch, in bytes; views and levels belong to images.
  struct Sizes {
    std::size_t y = 0, ids = 0, views = 0, levels = 0, x = 0;
  };

  BatchSender() = default;
  explicit BatchSender(const Sizes& sizes);

  struct Places {
    const std::byte* y = nullptr;
    const std::byte* ids = nullptr;
    const std::byte* views = nullptr;
    const std::byte* levels = nullptr;
    const std::byte* x = nullptr;
    std::span<const std::byte> x_on_host{};  ///< until the second batch after this
  };
  /// Later operations of `stream` find the batch there. One stream at a time.
  Places send(const data::Batch& batch, runtime::Stream& stream);

  /// Memory on the device.
  [[nodiscard]] std::size_t n_bytes() const noexcept { return 2 * x_at_ + 2 * x_bytes_; }

 private:
  struct Sent {
    runtime::Buffer here{};  ///< pinned
    runtime::Event done{};
  };

  std::size_t ids_at_ = 0, views_at_ = 0, levels_at_ = 0, x_at_ = 0, x_bytes_ = 0;  ///< y is first
  std::array<Sent, 2> sent_{};                                                      ///< in turn
  std::size_t n_sent_ = 0;
  runtime::Buffer arriving_{}, arrived_{};
  runtime::Event is_taken_{};  ///< the copy of the last batch to its place
  runtime::Stream sending_{};
};

}  // namespace lockstep::nn::cuda
