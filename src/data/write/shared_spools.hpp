// Spools that the ranks of a node make once: the first rank writes them, the others open the same files.
// Invariant: all ranks take the same spools in the same order; what cannot be opened is made, so sharing changes speed
// and room, never content.
// Used by the importers of text and compressed files, and by `lockstep shard import`.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/write/spool.hpp"

namespace lockstep::data {

class SharedSpools {
 public:
  /// For the first rank of a node, which makes what is taken.
  SharedSpools() = default;
  /// For the other ranks, which get what the first one has made. `offered` is its offer(); it must still have them.
  explicit SharedSpools(std::string_view offered);

  /// The next `n` spools, which `make` makes if no one else has.
  [[nodiscard]] std::vector<Spool> take(std::size_t n, const std::function<std::vector<Spool>()>& make);
  /// Where those lie that were made so far.
  [[nodiscard]] std::string offer() const;

 private:
  std::vector<SpoolPlace> made_{};
  std::deque<Spool> opened_{};
};

/// A list of what can only be moved.
template <class... Spools>
[[nodiscard]] std::vector<Spool> make_spools(Spools&&... spools) {
  std::vector<Spool> list;
  (list.push_back(std::move(spools)), ...);
  return list;
}

/// As SharedSpools::take; without sharing (a null pointer) what `make` makes.
[[nodiscard]] std::vector<Spool> take_spools(SharedSpools* shared, std::size_t n,
                                             const std::function<std::vector<Spool>()>& make);

}  // namespace lockstep::data
