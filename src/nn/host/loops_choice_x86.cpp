#include "nn/host/loops.hpp"

namespace lockstep::nn::host {
namespace {

const Loops& choose() noexcept {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return plain_loops;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return has_avx512 ? avx512_loops : avx2_loops;
}

}  // namespace

const Loops& loops() noexcept {
  static const Loops& chosen = choose();
  return chosen;
}

}  // namespace lockstep::nn::host
