// The vector instructions that may be used here, for loops that are compiled once for each set.
// Invariant: the answer is always the same; processors other than x86 have no set.
// Used by loop_sets.hpp and data to choose loops, and recorded in every result.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::core {

/// Each set includes those above it.
struct InstructionSets {
  bool avx2 = false;         ///< AVX2, FMA and F16C
  bool avx512 = false;       ///< AVX-512 F, BW, VL and DQ
  bool avx512_vbmi = false;  ///< permutations of bytes
};

/// Returns the sets that both the processor and the system support: the system has to save the registers.
[[nodiscard]] InstructionSets processor_sets() noexcept;

/// Returns those that ONEDNN_MAX_CPU_ISA allows: the variable that limits oneDNN also limits our loops.
[[nodiscard]] InstructionSets instruction_sets() noexcept;

/// The widest of them: "avx512", "avx2" or "plain".
[[nodiscard]] std::string_view widest(const InstructionSets& sets) noexcept;

/// Returns what a limit leaves of `sets`; the limit is one of oneDNN's names, in upper or lower case. Nothing for other
/// names.
[[nodiscard]] std::optional<InstructionSets> limited(const InstructionSets& sets, std::string_view limit) noexcept;

/// Says which variable limits the sets, and to what; "" if neither that one nor the older DNNL_MAX_CPU_ISA does.
[[nodiscard]] std::string instruction_limit_warning();

/// The line of a help about that variable.
inline constexpr std::string_view instruction_limit_help =
    "ONEDNN_MAX_CPU_ISA=AVX2 (or SSE41) in the environment disables newer vector instructions, as on an older "
    "processor.\n";

/// Fails, and lists the choices, if the limit is not one of oneDNN's names, because oneDNN would silently ignore it.
void check_instruction_limit();

}  // namespace lockstep::core
