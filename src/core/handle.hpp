// UniqueHandle: the one owner of C handles (MPI, hwloc, file descriptors, ...).
// Invariant: moves are written once, here, so no handle class can leak on assignment.
// Used by runtime/ and comm/.
#pragma once

#include <utility>

namespace lockstep::core {

/// Owns one `Policy::Raw`. A policy provides `Raw`, `static Raw null()` and `static void destroy(Raw) noexcept`.
template <class Policy>
class UniqueHandle {
 public:
  using Raw = typename Policy::Raw;

  UniqueHandle() noexcept = default;
  explicit UniqueHandle(Raw raw) noexcept : raw_{raw} {}
  UniqueHandle(UniqueHandle&& other) noexcept : raw_{std::exchange(other.raw_, Policy::null())} {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    UniqueHandle{std::move(other)}.swap(*this);
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() {
    if (raw_ != Policy::null()) Policy::destroy(raw_);
  }

  [[nodiscard]] Raw get() const noexcept { return raw_; }
  /// For callers that destroy the handle themselves.
  [[nodiscard]] Raw release() noexcept { return std::exchange(raw_, Policy::null()); }
  [[nodiscard]] explicit operator bool() const noexcept { return raw_ != Policy::null(); }
  void swap(UniqueHandle& other) noexcept { std::swap(raw_, other.raw_); }

 private:
  Raw raw_ = Policy::null();
};

}  // namespace lockstep::core
