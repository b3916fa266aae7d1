#include <cpuid.h>

#include "core/instruction_sets.hpp"

namespace lockstep::core {
namespace {

/// Clang 14's __builtin_cpu_supports() does not know this one. The check of AVX2 covers whether the system saves AVX
/// registers.
bool has_f16c() noexcept {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

InstructionSets processor_sets() noexcept {
  __builtin_cpu_init();
  InstructionSets sets;
  sets.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  sets.avx512 = sets.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  sets.avx512_vbmi = sets.avx512 && __builtin_cpu_supports("avx512vbmi");
  return sets;
}

}  // namespace lockstep::core
