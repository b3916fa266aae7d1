#include "core/instruction_sets.hpp"
#include "data/image/resize_loops.hpp"

namespace lockstep::data {

std::span<const ResizeLoops* const> available_resize_loops() noexcept {
  static const core::LoopVersions<ResizeLoops> versions{plain_resize_loops, avx2_resize_loops, avx512_resize_loops};
  return versions.available();
}

}  // namespace lockstep::data
