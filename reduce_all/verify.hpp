// Test data whose exact result every rank knows without communication, and the comparison with it.
// Invariant: element i of rank r is a pure function of (seed, i, r, n_ranks, dtype, op); results and partial
// results are exact in the type and never overflow, so any order of combining gives the same bits.
// Used by the measuring loop; tested against brute force over all types, ops and rank counts.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/collective.hpp"

namespace lockstep::reduce_all {

/// The first wrong element and the number of wrong ones.
struct Mismatch {
  std::uint64_t n_wrong = 0;
  std::uint64_t index = 0;     ///< of the first wrong element, in this rank's output
  std::uint64_t expected = 0;  ///< its bytes, as stored
  std::uint64_t found = 0;

  /// Adds the counts of another check; keeps the first element found.
  void add(const Mismatch& other) noexcept;
};

/// "1.5 (0x3fc00000)": the element whose bytes are the low ones of `bits`.
[[nodiscard]] std::string format_element(core::DType dtype, std::uint64_t bits);

/// What `rank` puts in and must get out of one call.
///
/// With u = (r + h(i)) mod P for a hashed rotation h, so that every rank plays every part at some element, r brings
///   sum, avg:  s(i) * (a(i) + c(i) * max(w - u, 0))  total s * (P*a + c*w(w+1)/2)
///   prod:      2 if u < k(i), else 1; u = 0 brings the sign s(i)  total s * 2^k
///   min:       b(i) + min(u, w)  total b;   max: b(i) + w - min(u, w)  total b + w
/// where w <= P is as large as the type's exact integers allow: in narrow types at many ranks only w ranks differ
/// at any one element, but which ones changes from element to element; 8-bit averages over more ranks than
/// fit the type are 0.
/// all_gather moves the sum's data. s, a, b, c, h, k repeat after `period` elements: data is then made and compared at
/// the speed of a copy. The period is a prime, so only a shift by a multiple of just that prime goes unseen.
class TestData {
 public:
  static constexpr std::size_t period = 16381;

  TestData(const comm::Call& call, int rank, int n_ranks, std::uint64_t seed);

  /// Writes this rank's input.
  void fill(std::span<std::byte> input) const;
  /// Writes values that no result has: the least signed, the greatest unsigned integer, NaN.
  void poison(std::span<std::byte> output) const;
  /// Compares this rank's whole output, byte by byte.
  [[nodiscard]] Mismatch check(std::span<const std::byte> output) const;

  /// The tile that the input repeats, up to a period.
  [[nodiscard]] std::span<const std::byte> input() const noexcept { return input_; }
  /// Returns how a part of the output, in bytes, differs from the repeated tile, which may be gone afterwards.
  using Compare = std::function<Mismatch(const core::Slice& part, std::span<const std::byte> tile)>;
  /// check() for an output of `n_bytes`, for code that compares elsewhere.
  [[nodiscard]] Mismatch check_by(std::size_t n_bytes, const Compare& compare) const;

 private:
  comm::Call call_;
  int rank_;
  int n_ranks_;
  std::uint64_t seed_;
  std::vector<std::byte> input_;     ///< the first period of this rank's input
  std::vector<std::byte> expected_;  ///< the first period of its output; empty for all_gather
};

}  // namespace lockstep::reduce_all
