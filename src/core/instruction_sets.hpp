// Which vector instructions may be used here, for loops that are compiled once for each set.
// Invariant: whoever asks gets the same answer; no set is there on processors other than x86.
// Used by comm, optim, nn/host and tensor, where they choose among their loops.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace lockstep::core {

/// Each with those above it.
struct InstructionSets {
  bool avx2 = false;         ///< AVX2, FMA and F16C
  bool avx512 = false;       ///< AVX-512 F, BW, VL and DQ
  bool avx512_vbmi = false;  ///< permutations of bytes
};

/// Of the processor and the system, which has to save the registers.
[[nodiscard]] InstructionSets instruction_sets() noexcept;

/// Loops in three versions: those that can run here, the plain ones first and the widest last.
template <class Loops>
class LoopVersions {
 public:
  LoopVersions(const Loops& plain, const Loops& avx2, const Loops& avx512) noexcept
      : all_{&plain, &avx2, &avx512},
        n_{1 + static_cast<std::size_t>(instruction_sets().avx2) +
           static_cast<std::size_t>(instruction_sets().avx512)} {}

  [[nodiscard]] std::span<const Loops* const> available() const noexcept { return std::span{all_}.first(n_); }

 private:
  std::array<const Loops*, 3> all_;
  std::size_t n_;
};

}  // namespace lockstep::core
