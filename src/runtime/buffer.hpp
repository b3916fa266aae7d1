// Memory for data: page-aligned, zeroed by the thread that asks for it (first touch places it).
// Invariant: owned, never resized; `bytes()` is exactly what was asked for.
// Used by comm/ (scratch) and reduce_all/ (send and receive buffers).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/units.hpp"

namespace lockstep::runtime {

class HostBuffer {
 public:
  HostBuffer() = default;
  /// Throws core::Error (ExitCode::system) if the memory cannot be had.
  explicit HostBuffer(core::Bytes size);

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_.get(), size_}; }
  /// The buffer as elements; `size` must be a multiple of sizeof(T).
  template <class T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_.get()), size_ / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

/// Size of the largest cache of this processor; a guess of 32 MiB where the system does not tell.
[[nodiscard]] core::Bytes last_level_cache() noexcept;

}  // namespace lockstep::runtime
