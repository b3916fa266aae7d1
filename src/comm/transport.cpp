#include "comm/transport.hpp"

#include <algorithm>
#include <map>

namespace lockstep::comm {

int Transport::n_nodes() const noexcept { return 1 + *std::max_element(nodes().begin(), nodes().end()); }

std::vector<int> renumber(const std::vector<int>& labels) {
  std::map<int, int> indices;
  std::vector<int> nodes;
  nodes.reserve(labels.size());
  for (const int label : labels)
    nodes.push_back(indices.try_emplace(label, static_cast<int>(indices.size())).first->second);
  return nodes;
}

}  // namespace lockstep::comm
