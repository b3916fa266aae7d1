#include "data/image/resize_loops.hpp"

namespace lockstep::data {

std::span<const ResizeLoops* const> available_resize_loops() noexcept {
  static constexpr const ResizeLoops* sets[] = {&plain_resize_loops};
  return sets;
}

}  // namespace lockstep::data
