#include "core/instruction_sets.hpp"
#include "data/augment/planar.hpp"

namespace lockstep::data {

void convert_planar_vbmi(const PlanarRow& row, const std::uint8_t* planes, std::size_t element_bytes, std::byte* out,
                         std::size_t channel_stride);

ConvertPlanar find_planar() noexcept { return core::instruction_sets().avx512_vbmi ? convert_planar_vbmi : nullptr; }

}  // namespace lockstep::data
