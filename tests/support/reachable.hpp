// Memory that kernels of a test program reach wherever they run: pinned if an accelerator is in use, else plain.
// Invariant: memory that was allocated while an accelerator was in use is freed while it still is.
// Used by tests of kernels' bodies, for all their arrays and numbers.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "runtime/accelerator.hpp"

namespace lockstep::test {

template <class T>
struct ReachableAllocator {
  using value_type = T;
  ReachableAllocator() noexcept = default;
  template <class U>
  ReachableAllocator(const ReachableAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor): as rebind asks

  T* allocate(std::size_t n) {
    runtime::Accelerator* const device = runtime::accelerator();
    if (device == nullptr) return static_cast<T*>(::operator new(n * sizeof(T), alignment));
    return reinterpret_cast<T*>(device->allocate(n * sizeof(T), runtime::Memory::pinned));
  }
  void deallocate(T* data, std::size_t) noexcept {
    runtime::Accelerator* const device = runtime::accelerator();
    if (device == nullptr) return ::operator delete(data, alignment);
    device->release(reinterpret_cast<std::byte*>(data), runtime::Memory::pinned);
  }
  template <class U>
  bool operator==(const ReachableAllocator<U>&) const noexcept {
    return true;
  }

 private:
  static constexpr std::align_val_t alignment{16};  // that of a pack
};

template <class T>
using Vector = std::vector<T, ReachableAllocator<T>>;

/// One number or struct, for a kernel to read or write.
template <class T>
class Reachable {
 public:
  T* operator->() noexcept { return only_.data(); }
  T& operator*() noexcept { return only_.front(); }
  [[nodiscard]] T* get() noexcept { return only_.data(); }

 private:
  Vector<T> only_ = Vector<T>(1);
};

}  // namespace lockstep::test
