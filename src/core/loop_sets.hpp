// Loops that are compiled once for each instruction set, and the choice among them at run time.
// Invariant: all sets give the same bits. The code of a set has no external linkage, except version<set>(): if several
// sets had the same inline function, the linker would keep one copy, which might use instructions that the processor
// lacks.
// Used by comm, data, nn/host and optim.
//
// A folder writes its loops in one source, as plain C++ that compilers vectorize. lockstep_loop_sources() of CMake
// compiles it for each set, with that set's flags and LOCKSTEP_LOOP_SET. ARM's NEON belongs to every 64-bit ARM
// processor, so `plain` uses it. SVE would be an enumerator, a name and an entry of available_loops() here, flags in
// LockstepTargets.cmake, a question to the processor in instruction_sets, and vectors in comm/loops_simd.hpp.
// Highway 1.0.3 was tried: it makes the same choice, and loops are vectorized as widely. But these loops would use only
// its choice, not its vectors. It compiles up to five sets for x86, warns about GCC's vectors in templates, does not
// obey ONEDNN_MAX_CPU_ISA, and would be one more dependency.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "core/instruction_sets.hpp"

namespace lockstep::core {

/// Enumerators equal the words shown to users. Other processors than x86 have the plain set only.
enum class LoopSet { plain, avx2, avx512 };

[[nodiscard]] constexpr std::string_view name(LoopSet set) noexcept {
  return set == LoopSet::plain ? "plain" : set == LoopSet::avx2 ? "avx2" : "avx512";
}

/// The set that the including source is compiled for: `plain` unless CMake says otherwise. A source of loops defines
/// `Loops::version<this_loop_set>()`.
#ifdef LOCKSTEP_LOOP_SET
constexpr LoopSet this_loop_set = LoopSet::LOCKSTEP_LOOP_SET;
#else
constexpr LoopSet this_loop_set = LoopSet::plain;
#endif

/// Returns the loops that this processor can run, plain ones first and the fastest last. `Loops` is a table of
/// functions with a static member `template <LoopSet set> const Loops& version() noexcept`.
template <class Loops>
[[nodiscard]] std::span<const Loops* const> available_loops() noexcept {
  struct Versions {
    std::array<const Loops*, 3> all{&Loops::template version<LoopSet::plain>()};
    std::size_t n = 1;

    Versions() noexcept {
#ifdef __x86_64__
      const InstructionSets sets = instruction_sets();
      if (sets.avx2) all[n++] = &Loops::template version<LoopSet::avx2>();
      if (sets.avx512) all[n++] = &Loops::template version<LoopSet::avx512>();
#endif
    }
  };
  static const Versions versions;
  return std::span{versions.all}.first(versions.n);
}

}  // namespace lockstep::core
