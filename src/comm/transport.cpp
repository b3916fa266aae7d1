#include "comm/transport.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace lockstep::comm {
namespace {

/// Collective: gives every rank's value to all ranks.
std::vector<int> gather_everywhere(const runtime::Communicator& communicator, int mine) {
  std::vector<int> all = runtime::gather_values<int>(communicator, std::span<const int>{&mine, 1});
  all.resize(static_cast<std::size_t>(communicator.n_ranks()));
  communicator.broadcast(std::as_writable_bytes(std::span{all}));
  return all;
}

/// Collective: returns the lowest rank of each rank's node.
std::vector<int> find_nodes(const runtime::Communicator& world) {
  return gather_everywhere(world, runtime::broadcast_value(*world.split_shared(), world.rank()));
}

/// Makes every `n_ranks` ranks of a node a node.
std::vector<int> divide(const std::vector<int>& nodes, int n_ranks) {
  std::map<int, int> n_before;  // ranks of the node
  std::map<std::pair<int, int>, int> parts;
  std::vector<int> result;
  for (const int node : nodes) {
    const std::pair part{node, n_before[node]++ / n_ranks};
    result.push_back(parts.try_emplace(part, static_cast<int>(parts.size())).first->second);
  }
  return result;
}

}  // namespace

int Transport::n_nodes() const noexcept { return 1 + *std::max_element(nodes().begin(), nodes().end()); }

int Transport::n_real_nodes() const noexcept {
  return 1 + *std::max_element(seating_.real_nodes.begin(), seating_.real_nodes.end());
}

std::unique_ptr<Transport> Transport::split(int color, int key) {
  std::unique_ptr<runtime::Communicator> part = communicator_->split(color, key);
  Seating its{.is_crowded = seating_.is_crowded};
  for (const int member : gather_everywhere(*part, rank())) {
    const auto r = static_cast<std::size_t>(member);
    its.nodes.push_back(seating_.nodes[r]);
    its.real_nodes.push_back(seating_.real_nodes[r]);
    its.seats.push_back(seating_.seats[r]);
  }
  its.nodes = renumber(its.nodes);
  its.real_nodes = renumber(its.real_nodes);
  auto transport = std::make_unique<Transport>(std::move(part), std::move(its));
  transport->parent_ = this;
  return transport;
}

std::unique_ptr<Transport> make_transport(const runtime::Communicator& world, const TransportOptions& options) {
  std::vector<int> nodes;
  std::vector<Seat> seats;
  if (options.topology == nullptr) {
    nodes = find_nodes(world);
    seats.resize(nodes.size());
  } else {
    for (const runtime::Place& place : options.topology->places) {
      nodes.push_back(place.node);
      seats.push_back({place.socket, place.cache});
    }
  }
  const std::vector<int> parts = options.ranks_per_node > 0 ? divide(nodes, options.ranks_per_node) : nodes;
  return std::make_unique<Transport>(
      world.duplicate(), Seating{.nodes = renumber(parts),
                                 .real_nodes = renumber(nodes),
                                 .seats = std::move(seats),
                                 .is_crowded = options.oversubscribed ||
                                               (options.topology != nullptr && options.topology->is_oversubscribed())});
}

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
