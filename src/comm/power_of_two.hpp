// Which ranks work in pairs if their number is not a power of two, and the order of parts if the first pairs are
// neighbours.
// Invariant: neighbours are adjacent, so partial results stay sums over consecutive ranks. A pure value.
// Used by the algorithms that work in pairs, and by Call::part().
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep::comm {

/// The even ranks of the first 2*extra step aside; the others are numbered 0 ... n_active-1 (a power of two).
struct PowerOfTwoFold {
  PowerOfTwoFold(int n_ranks, int rank)
      : n_active{static_cast<int>(std::bit_floor(static_cast<unsigned>(n_ranks)))},
        extra{n_ranks - n_active},
        is_aside{rank < 2 * extra && rank % 2 == 0},
        has_partner{rank < 2 * extra && rank % 2 == 1},
        active_rank{rank < 2 * extra ? rank / 2 : rank - extra} {}

  [[nodiscard]] int rank_of(int active) const noexcept { return active < extra ? 2 * active + 1 : active + extra; }
  [[nodiscard]] std::uint64_t n_rounds() const noexcept {
    return static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(n_active)) - 1);
  }

  /// Reverses the bits of an active rank's number. Halving a vector by distances 1, 2, 4, ... leaves active rank a with
  /// part mirrored(a).
  [[nodiscard]] int mirrored(int active) const noexcept {
    int result = 0;
    for (int bit = 1; bit < n_active; bit *= 2) result = 2 * result + ((active & bit) != 0 ? 1 : 0);
    return result;
  }
  /// The part of this rank if parts lie in that order; the part of a rank aside comes just before its partner's.
  [[nodiscard]] int mirrored_part() const noexcept {
    const int place = mirrored(active_rank);
    return place + n_aside_before(place) + (has_partner ? 1 : 0);
  }

  /// The number of ranks aside whose partners are at places before `place`. Even active ranks are at the first half of
  /// all places, odd ones at the second; in each half the same holds for the next bit.
  [[nodiscard]] int n_aside_before(int place) const noexcept {
    int n_before = 0;
    int n_aside = extra;  // with partners in the present half
    for (int half = n_active / 2; half >= 1; half /= 2) {
      const int n_even = (n_aside + 1) / 2;
      const bool is_in_second = place > half;
      if (is_in_second) n_before += n_even;
      n_aside = is_in_second ? n_aside - n_even : n_even;
      place -= is_in_second ? half : 0;
    }
    return n_before + (place > 0 ? n_aside : 0);
  }

  int n_active;
  int extra;
  bool is_aside;
  bool has_partner;
  int active_rank;  ///< its own number, or of a rank aside that of its partner
};

}  // namespace lockstep::comm
