#include "parallel/node_flags.hpp"

#include <algorithm>

namespace lockstep::parallel {

NodeFlags::NodeFlags(comm::Transport& node) : node_{node}, segment_{node.share(n_stages * sizeof(comm::Flag))} {
  for (int rank = 0; rank < node.n_ranks(); ++rank)
    flags_.push_back(reinterpret_cast<comm::Flag*>(segment_->part(rank).data()));
}

bool NodeFlags::all_reached(Stage stage, std::uint64_t value) const noexcept {
  return std::all_of(flags_.begin(), flags_.end(),
                     [&](const comm::Flag* first) { return first[static_cast<std::size_t>(stage)].reached(value); });
}

bool NodeFlags::any_reached(Stage stage, std::uint64_t value) const noexcept {
  return std::any_of(flags_.begin(), flags_.end(),
                     [&](const comm::Flag* first) { return first[static_cast<std::size_t>(stage)].reached(value); });
}

runtime::Wait NodeFlags::wait_of(Stage stage) noexcept {
  switch (stage) {
    case Stage::gradients:
    case Stage::sums: return runtime::Wait::gradients;
    case Stage::norms: return runtime::Wait::norms;
    case Stage::parameters:
    case Stage::halt:
    case Stage::needs:
    case Stage::gathers: break;
  }
  return runtime::Wait::parameters;
}

comm::Flag& NodeFlags::flag(int rank, Stage stage) const noexcept {
  return flags_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage)];
}

}  // namespace lockstep::parallel
