// An array that all ranks of a node read and write.
// Invariant: zeroed at creation; in the memory of the node's first rank; its users agree on who writes which part.
// Used by the synchronizer and its parts.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "comm/transport.hpp"

namespace lockstep::parallel {

template <class T>
class SharedArray {
 public:
  /// Collective over the ranks of one node, which must outlive it.
  SharedArray(comm::Transport& node, std::size_t n_elements)
      : segment_{node.share(node.rank() == 0 ? n_elements * sizeof(T) : 0)},
        values_{reinterpret_cast<T*>(segment_->part(0).data()), n_elements} {}

  [[nodiscard]] std::span<T> values() const noexcept { return values_; }

 private:
  std::unique_ptr<comm::SharedSegment> segment_;
  std::span<T> values_;
};

}  // namespace lockstep::parallel
