#include "core/instruction_sets.hpp"
#include "optim/kernels_sets.hpp"

namespace lockstep::optim {

std::span<const Kernels* const> available_kernels() noexcept {
  static const core::LoopVersions<Kernels> versions{plain_kernels, avx2_kernels, avx512_kernels};
  return versions.available();
}

}  // namespace lockstep::optim
