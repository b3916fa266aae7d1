// The memory of one program: pieces of one arena, each needed only for a while.
// Invariant: pieces needed at the same time never overlap; a piece has no address before all are known, and a fixed one
// afterwards.
// Used by nn/cuda: layers ask for pieces while they are planned, and read and write them while they are enqueued.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

#include "nn/arena_plan.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

struct Piece {
  Lifetime lifetime{};
  std::byte* address = nullptr;
};

/// Elements of a program's memory: their address, once they have one.
template <class T>
class Place {
 public:
  Place() = default;
  explicit Place(Piece& piece) : piece_{&piece} {}

  [[nodiscard]] bool is_given() const noexcept { return piece_ != nullptr; }
  // Kernels take addresses, whatever they are of.
  operator T*() const noexcept {  // NOLINT(google-explicit-constructor)
    return piece_ == nullptr ? nullptr : reinterpret_cast<T*>(piece_->address);
  }

 private:
  friend class ProgramMemory;
  Piece* piece_ = nullptr;
};

class ProgramMemory {
 public:
  template <class T>
  [[nodiscard]] Place<T> make(std::size_t n_elements) {
    pieces_.push_back({{n_elements * sizeof(T)}});
    return Place<T>{pieces_.back()};
  }

  /// The piece is needed from its first use to its last; one that is never used has no address.
  template <class T>
  void use(const Place<T>& place, int time) {
    if (place.is_given()) use(*place.piece_, time);
  }

  /// The piece is needed at all times of use_held() too, until it is let go.
  template <class T>
  void hold(const Place<T>& place) {
    if (place.is_given()) held_.push_back({n_turns_, place.piece_});
  }
  /// Lets go of what was held more than `n_turns` turns ago.
  void begin_turn(int n_turns);
  void use_held(int time);

  /// After all uses: the arena's size.
  [[nodiscard]] std::size_t plan();
  void place_at(std::byte* arena);

 private:
  struct Held {
    int turn;
    Piece* piece;
  };

  static void use(Piece& piece, int time);

  std::deque<Piece> pieces_{};  // whose addresses stay
  std::vector<Held> held_{};
  int n_turns_ = 0;
  ArenaPlan plan_{};
};

/// What the programs of an executor lie in, as one is enqueued at a time: none needs what it held when another ran.
class SharedArena {
 public:
  /// Of the largest program, before any takes its part.
  void expect(std::size_t n_bytes) noexcept { expected_ = n_bytes; }
  /// At least so many bytes: those of another program if they are enough. Addresses stay.
  [[nodiscard]] std::byte* take(std::size_t n_bytes);
  /// What it has, or will have.
  [[nodiscard]] std::size_t n_bytes() const noexcept;

 private:
  std::size_t expected_ = 0;
  std::vector<runtime::Buffer> buffers_{};  // each larger than the one before
};

}  // namespace lockstep::nn::cuda
