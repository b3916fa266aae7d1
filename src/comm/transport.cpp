#include "comm/transport.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace lockstep::comm {

int Transport::n_nodes() const noexcept { return 1 + *std::max_element(nodes().begin(), nodes().end()); }

std::vector<int> one_rank_each(int n_nodes) {
  std::vector<int> nodes(static_cast<std::size_t>(n_nodes));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

std::vector<int> renumber(const std::vector<int>& labels) {
  std::map<int, int> indices;
  std::vector<int> nodes;
  nodes.reserve(labels.size());
  for (const int label : labels)
    nodes.push_back(indices.try_emplace(label, static_cast<int>(indices.size())).first->second);
  return nodes;
}

}  // namespace lockstep::comm
