#include "comm/transport_threads.hpp"

namespace lockstep::comm {

Traffic run_as_threads(const std::vector<int>& nodes, const std::function<void(Transport&)>& body,
                       core::Seconds patience, const std::vector<Seat>& seats) {
  runtime::ThreadsLayout layout{.nodes = nodes, .patience = patience};
  for (const Seat& seat : seats) layout.sockets.push_back(seat.socket);
  return runtime::run_as_threads(layout, [&](runtime::Communicator& world) {
    const std::vector<int> labels = renumber(nodes);
    Transport transport{
        world.duplicate(),
        {.nodes = labels, .real_nodes = labels, .seats = seats.empty() ? std::vector<Seat>(nodes.size()) : seats}};
    body(transport);
  });
}

}  // namespace lockstep::comm
