// Every kernel for GPUs, on arrays that are much larger than a cache, with the bytes that one launch must move.
// Invariant: a row's bytes are those that its operation declares to read and write, which a test checks.
// Used by kernel_bench and that test.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runtime/device.hpp"

namespace lockstep::perf {

struct KernelRow {
  std::string name;         ///< of the operation
  std::size_t n_bytes = 0;  ///< read and written
  std::function<void(runtime::Stream&)> enqueue;
};

/// Arrays that rows share.
class KernelArrays {
 public:
  template <class T>
  [[nodiscard]] T* make(std::size_t n) {
    buffers_.emplace_back(core::Bytes{n * sizeof(T)}, runtime::Memory::device);
    return buffers_.back().template on_device<T>().data();
  }
  /// An array with a copy of `values`, made by the host now.
  template <class T>
  [[nodiscard]] T* make(const std::vector<T>& values) {
    T* const there = make<T>(values.size());
    send(there, values.data(), values.size() * sizeof(T));
    return there;
  }

 private:
  static void send(void* to, const void* from, std::size_t n_bytes);
  std::vector<runtime::Buffer> buffers_{};
};

/// Rows of networks, in bf16, whose largest arrays have `n` elements, a multiple of 2^16; of optimizers, in float32
/// with n parameters; and of reduce_all's test data, n floats. The arrays must outlive them.
[[nodiscard]] std::vector<KernelRow> network_rows(KernelArrays& arrays, std::size_t n);
[[nodiscard]] std::vector<KernelRow> optimizer_rows(KernelArrays& arrays, std::size_t n);
[[nodiscard]] std::vector<KernelRow> pattern_rows(KernelArrays& arrays, std::size_t n);

}  // namespace lockstep::perf
