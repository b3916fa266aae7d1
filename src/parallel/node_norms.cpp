#include "parallel/node_norms.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lockstep::parallel {

NodeNorms::NodeNorms(comm::Transport& node, NodeFlags& flags, std::size_t n_slots, std::vector<Piece> blocks)
    : flags_{flags},
      blocks_{std::move(blocks)},
      gradient_{node, blocks_.size()},
      tensors_{node, 2 * blocks_.size()},
      of_slots_(2 * n_slots) {}

std::size_t NodeNorms::first_block(const core::Slice& slice) const noexcept {
  const auto at = std::partition_point(blocks_.begin(), blocks_.end(),
                                       [&](const Piece& block) { return block.slice.offset < slice.offset; });
  return static_cast<std::size_t>(at - blocks_.begin());
}

void NodeNorms::put_gradient(std::size_t first_block, std::span<const double> norms) noexcept {
  std::copy(norms.begin(), norms.end(), gradient_.values().subspan(first_block).begin());
}

double NodeNorms::sum_gradient() {
  exchange();
  return std::accumulate(gradient_.values().begin(), gradient_.values().end(), 0.0);
}

void NodeNorms::put_tensors(std::size_t first_block, std::span<const double> norms) noexcept {
  std::copy(norms.begin(), norms.end(), tensors_.values().subspan(2 * first_block).begin());
}

void NodeNorms::sum_tensors() {
  exchange();
  std::fill(of_slots_.begin(), of_slots_.end(), 0.0);
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    for (std::size_t which = 0; which < 2; ++which)
      of_slots_[2 * blocks_[i].slot + which] += tensors_.values()[2 * i + which];
}

void NodeNorms::get_tensors(std::size_t first_block, std::span<double> norms) const noexcept {
  for (std::size_t i = 0; i < norms.size(); ++i) norms[i] = of_slots_[2 * blocks_[first_block + i / 2].slot + i % 2];
}

// The arrays are next written in the next step, after all ranks have arrived there and therefore read them.
void NodeNorms::exchange() {
  flags_.publish(Stage::norms, ++n_exchanges_);
  flags_.await_all(Stage::norms, n_exchanges_);
}

}  // namespace lockstep::parallel
