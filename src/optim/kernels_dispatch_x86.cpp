#include "optim/kernels_sets.hpp"

namespace lockstep::optim {
namespace {

// One check for each flag of kernels.cmake.
bool can_run_avx2() noexcept { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool can_run_avx512() noexcept {
  return can_run_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
}

struct SetList {
  const Kernels* sets[3] = {&plain_kernels};
  std::size_t n = 1;
};

SetList find_sets() noexcept {
  __builtin_cpu_init();
  SetList list;
  if (can_run_avx2()) list.sets[list.n++] = &avx2_kernels;
  if (can_run_avx512()) list.sets[list.n++] = &avx512_kernels;
  return list;
}

}  // namespace

std::span<const Kernels* const> available_kernels() noexcept {
  static const SetList list = find_sets();
  return {list.sets, list.n};
}

}  // namespace lockstep::optim
