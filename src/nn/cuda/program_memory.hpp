// The memory of one program: pieces of one arena, each needed for a limited time.
// Invariant: pieces needed at the same time never overlap; a piece gets an address when all are known, and keeps it.
// Used by nn/cuda: layers request pieces while they are planned, and access them while they are enqueued.
#pragma once

#include <cstddef>
#include <vector>

#include "nn/plan/arena_plan.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

template <class T>
class Place;

class ProgramMemory {
 public:
  template <class T>
  [[nodiscard]] Place<T> make(std::size_t n_elements) {
    return {*this, buffers_.add(n_elements * sizeof(T))};
  }

  /// The piece is needed from its first use to its last; one that is never used has no address.
  template <class T>
  void use(const Place<T>& place, int time) {
    if (place.is_given()) buffers_.use(place.piece_, time);
  }

  /// Also needs the piece at all times of use_held(), until it is released.
  template <class T>
  void hold(const Place<T>& place) {
    if (place.is_given()) held_.push_back({n_turns_, place.piece_});
  }
  /// Releases pieces that were held more than `n_turns` turns ago.
  void begin_turn(int n_turns);
  void use_held(int time);

  /// Places all pieces, after all uses; returns the arena's size.
  [[nodiscard]] std::size_t plan();
  void place_at(std::byte* arena) noexcept { arena_ = arena; }
  /// Null before place_at().
  [[nodiscard]] std::byte* address(std::size_t piece) const {
    return arena_ == nullptr ? nullptr : arena_ + buffers_.offset(piece);
  }

 private:
  struct Held {
    int turn;
    std::size_t piece;
  };

  Buffers buffers_{};
  std::vector<Held> held_{};
  int n_turns_ = 0;
  std::byte* arena_ = nullptr;
};

/// Elements of a program's memory; they have an address once the memory is placed.
template <class T>
class Place {
 public:
  Place() = default;
  Place(const ProgramMemory& memory, std::size_t piece) : memory_{&memory}, piece_{piece} {}

  [[nodiscard]] bool is_given() const noexcept { return memory_ != nullptr; }
  // Kernels take addresses of any memory.
  operator T*() const noexcept {  // NOLINT(google-explicit-constructor)
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_->address(piece_));
  }

 private:
  friend class ProgramMemory;
  const ProgramMemory* memory_ = nullptr;
  std::size_t piece_ = 0;
};

/// The memory that all programs of an executor share: one program is enqueued at a time, and none needs its old
/// content.
class SharedArena {
 public:
  /// Sets the size of the largest program, before any program calls take().
  void expect(std::size_t n_bytes) noexcept { expected_ = n_bytes; }
  /// Returns at least `n_bytes`: an existing buffer if it is large enough. Addresses stay valid.
  [[nodiscard]] std::byte* take(std::size_t n_bytes);
  /// The present size, or the expected one.
  [[nodiscard]] std::size_t n_bytes() const noexcept;

 private:
  std::size_t expected_ = 0;
  std::vector<runtime::Buffer> buffers_{};  // each larger than the one before
};

}  // namespace lockstep::nn::cuda
