#include "comm/kernels_sets.hpp"
#include "core/instruction_sets.hpp"

namespace lockstep::comm {

std::span<const Kernels* const> available_kernels() noexcept {
  static const core::LoopVersions<Kernels> versions{plain_kernels, avx2_kernels, avx512_kernels};
  return versions.available();
}

}  // namespace lockstep::comm
