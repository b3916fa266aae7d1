#include "tensor/planar.hpp"

namespace lockstep::tensor {

void convert_planar_vbmi(const PlanarRow& row, const std::uint8_t* planes, std::size_t element_bytes, std::byte* out,
                         std::size_t channel_stride);

ConvertPlanar find_planar() noexcept {
  __builtin_cpu_init();
  const bool can_run =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi");
  return can_run ? convert_planar_vbmi : nullptr;
}

}  // namespace lockstep::tensor
