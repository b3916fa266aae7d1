#include "comm/transport_mpi.hpp"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "comm/segment_mpi.hpp"

namespace lockstep::comm {
namespace {

using runtime::check_mpi;

// A message longer than this travels as several, which keeps every count an int and every request small.
constexpr std::size_t largest_message = std::size_t{1} << 30;

// Up to this size a blocking send is faster and, in every MPI we know, does not wait for the receiver.
constexpr std::size_t largest_eager = 4096;

class MpiChannel final : public Channel {
 public:
  MpiChannel(MPI_Comm communicator, int tag, int n_slots)
      : communicator_{communicator}, tag_{tag}, requests_(static_cast<std::size_t>(n_slots)) {
    for (auto& requests : requests_) requests.reserve(1);
  }

  void recv(int slot, int from, std::span<std::byte> data) override {
    for_pieces(slot, data, [&](std::span<std::byte> piece, MPI_Request* request) {
      check_mpi(MPI_Irecv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, from, tag_, communicator_, request),
                "MPI_Irecv");
    });
  }

  void send(int slot, int to, std::span<const std::byte> data) override {
    for_pieces(slot, data, [&](std::span<const std::byte> piece, MPI_Request* request) {
      check_mpi(MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, to, tag_, communicator_, request),
                "MPI_Isend");
    });
  }

  void send_now(int slot, int to, std::span<const std::byte> data) override {
    if (data.size() > largest_eager) return send(slot, to, data);
    check_mpi(MPI_Send(data.data(), static_cast<int>(data.size()), MPI_BYTE, to, tag_, communicator_), "MPI_Send");
  }

  void wait(int slot) override {
    auto& requests = requests_[static_cast<std::size_t>(slot)];
    if (requests.size() == 1)
      check_mpi(MPI_Wait(requests.data(), MPI_STATUS_IGNORE), "MPI_Wait");
    else if (!requests.empty())
      check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    requests.clear();
  }

  bool test(int slot) override {
    auto& requests = requests_[static_cast<std::size_t>(slot)];
    int done = 1;
    if (!requests.empty())
      check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
                "MPI_Testall");
    if (done != 0) requests.clear();
    return done != 0;
  }

 private:
  template <class Byte, class Post>
  void for_pieces(int slot, std::span<Byte> data, Post post) {
    auto& requests = requests_[static_cast<std::size_t>(slot)];
    do {
      const auto piece = data.first(std::min(data.size(), largest_message));
      requests.push_back(MPI_REQUEST_NULL);
      post(piece, &requests.back());
      data = data.subspan(piece.size());
    } while (!data.empty());
  }

  MPI_Comm communicator_;
  int tag_;
  std::vector<std::vector<MPI_Request>> requests_;
};

class MpiTransport final : public Transport {
 public:
  /// `nodes`, `real_nodes` and `seats` of all its ranks.
  MpiTransport(runtime::Communicator communicator, std::vector<int> nodes, std::vector<int> real_nodes,
               std::vector<Seat> seats, bool oversubscribed)
      : communicator_{std::move(communicator)},
        nodes_{std::move(nodes)},
        real_nodes_{std::move(real_nodes)},
        seats_{std::move(seats)},
        oversubscribed_{oversubscribed} {
    if (communicator_.n_ranks() == 1) return;  // nobody to send to
    void* bound = nullptr;
    int found = 0;
    check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&bound), &found), "MPI_Comm_get_attr");
    if (found != 0) largest_tag_ = *static_cast<int*>(bound);
  }

  int rank() const noexcept override { return communicator_.rank(); }
  int n_ranks() const noexcept override { return communicator_.n_ranks(); }
  const std::vector<int>& nodes() const noexcept override { return nodes_; }
  int n_real_nodes() const noexcept override { return 1 + *std::ranges::max_element(real_nodes_); }
  const std::vector<Seat>& seats() const noexcept override { return seats_; }

  std::unique_ptr<Channel> open_channel(int n_slots) override {
    const int tag = next_tag_;
    next_tag_ = next_tag_ == largest_tag_ ? 0 : next_tag_ + 1;
    return std::make_unique<MpiChannel>(communicator_.raw(), tag, n_slots);
  }

  std::unique_ptr<Transport> split(int color, int key) override {
    runtime::Communicator part = communicator_.split(color, key);
    std::vector<int> labels, real_labels;
    std::vector<Seat> seats;
    for (const int member : communicator_.ranks_of(part)) {
      labels.push_back(nodes_[static_cast<std::size_t>(member)]);
      real_labels.push_back(real_nodes_[static_cast<std::size_t>(member)]);
      seats.push_back(seats_[static_cast<std::size_t>(member)]);
    }
    return std::make_unique<MpiTransport>(std::move(part), renumber(labels), renumber(real_labels), std::move(seats),
                                          oversubscribed_);
  }

  std::unique_ptr<SharedSegment> share(std::size_t bytes) override { return share_on_node(communicator_, bytes); }

  int spin_limit() const noexcept override { return oversubscribed_ ? 0 : 10'000; }
  // Yielding to other work may cost a whole time slice, and whoever sleeps is woken: 2 ranks, 16 MiB, other work on
  // both cores take 59 ms yielding, 8 ms sleeping. Among ranks that share cores yielding finds one that has work:
  // 4 ranks on 2 cores, 8 B take 2.5 us yielding, 105 us sleeping.
  void relax(std::uint64_t) override {
    if (oversubscribed_)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds{20});
  }

  const runtime::Communicator& communicator() const noexcept { return communicator_; }

 private:
  runtime::Communicator communicator_;
  std::vector<int> nodes_;
  std::vector<int> real_nodes_;
  std::vector<Seat> seats_;
  bool oversubscribed_;
  int next_tag_ = 0;
  int largest_tag_ = 32767;  // what the standard promises
};

/// Collective: of each rank the lowest rank of its node.
std::vector<int> find_nodes(const runtime::Communicator& world) {
  const int lowest = runtime::broadcast_value(world.split_shared(), world.rank());
  std::vector<int> all = runtime::gather_values<int>(world, std::span<const int>{&lowest, 1});
  all.resize(static_cast<std::size_t>(world.n_ranks()));
  world.broadcast(std::as_writable_bytes(std::span{all}));
  return all;
}

/// Every `n_ranks` ranks of a node are a node.
std::vector<int> divide(const std::vector<int>& nodes, int n_ranks) {
  std::map<int, int> n_before;  // ranks of a node
  std::map<std::pair<int, int>, int> parts;
  std::vector<int> result;
  for (const int node : nodes) {
    const std::pair part{node, n_before[node]++ / n_ranks};
    result.push_back(parts.try_emplace(part, static_cast<int>(parts.size())).first->second);
  }
  return result;
}

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(const runtime::Communicator& world, const MpiTransportOptions& options) {
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
  return std::make_unique<MpiTransport>(
      world.duplicate(), renumber(parts), renumber(nodes), std::move(seats),
      options.oversubscribed || (options.topology != nullptr && options.topology->is_oversubscribed()));
}

const runtime::Communicator* mpi_communicator(const Transport& transport) noexcept {
  const auto* over_mpi = dynamic_cast<const MpiTransport*>(&transport);
  return over_mpi != nullptr ? &over_mpi->communicator() : nullptr;
}

}  // namespace lockstep::comm
