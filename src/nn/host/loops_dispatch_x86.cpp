#include "core/instruction_sets.hpp"
#include "nn/host/loops.hpp"

namespace lockstep::nn::host {

const Loops& loops() noexcept {
  static const core::LoopVersions<Loops> versions{plain_loops, avx2_loops, avx512_loops};
  return *versions.available().back();
}

}  // namespace lockstep::nn::host
