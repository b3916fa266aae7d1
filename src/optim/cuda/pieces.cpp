#include "optim/cuda/pieces.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lockstep::optim::cuda {

Cut cut(std::span<const Segment> segments) {
  Cut result;
  for (const Segment& segment : segments) {
    const auto& [offset, count] = segment.slice;
    core::require(offset % range_multiple == 0 && count % range_multiple == 0,
                  "updated ranges begin and end at multiples of 16 elements");
    core::require(offset + count <= most_elements, "an arena has at most most_elements elements");
    const auto range = static_cast<std::uint32_t>(result.ranges.size());
    const auto first_piece = static_cast<std::uint32_t>(result.pieces.size());
    for (std::size_t done = 0; done < count; done += piece_elements)
      result.pieces.push_back({.offset = offset + done,
                               .n = static_cast<std::uint32_t>(std::min(count - done, piece_elements)),
                               .range = range});
    result.ranges.push_back({.first_piece = first_piece,
                             .n_pieces = static_cast<std::uint32_t>(result.pieces.size()) - first_piece,
                             .decays = segment.decays});
  }
  return result;
}

}  // namespace lockstep::optim::cuda
