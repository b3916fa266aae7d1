// Which vector instructions may be used here, for loops that are compiled once for each set.
// Invariant: whoever asks gets the same answer; no set is there on processors other than x86.
// Used by comm, data, optim and nn/host, where they choose among their loops, and told by every result.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::core {

/// Each with those above it.
struct InstructionSets {
  bool avx2 = false;         ///< AVX2, FMA and F16C
  bool avx512 = false;       ///< AVX-512 F, BW, VL and DQ
  bool avx512_vbmi = false;  ///< permutations of bytes
};

/// Of the processor and the system, which has to save the registers.
[[nodiscard]] InstructionSets processor_sets() noexcept;

/// Those of the processor that ONEDNN_MAX_CPU_ISA allows: the variable that limits oneDNN limits our loops alike.
[[nodiscard]] InstructionSets instruction_sets() noexcept;

/// The widest of them: "avx512", "avx2" or "plain".
[[nodiscard]] std::string_view widest(const InstructionSets& sets) noexcept;

/// What is left of `sets` under a limit by one of oneDNN's names, in upper or lower case; nothing if it has none such.
[[nodiscard]] std::optional<InstructionSets> limited(const InstructionSets& sets, std::string_view limit) noexcept;

/// Which variable limits the sets, and to what; "" if neither that nor the older DNNL_MAX_CPU_ISA does.
[[nodiscard]] std::string instruction_limit_warning();

/// Fails, and names the choices, if the limit is not one of oneDNN's names: oneDNN would silently ignore it.
void check_instruction_limit();

/// Loops in three versions: those that may run here, the plain ones first and the widest last.
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
