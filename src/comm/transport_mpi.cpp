#include "comm/transport_mpi.hpp"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
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
  MpiTransport(runtime::Communicator communicator, int node, Seat seat, bool oversubscribed)
      : communicator_{std::move(communicator)}, node_{node}, seat_{seat}, oversubscribed_{oversubscribed} {
    const auto n = static_cast<std::size_t>(n_ranks());
    const auto labels = runtime::gather_values<int>(communicator_, std::span<const int>{&node_, 1});
    nodes_ = labels.empty() ? std::vector<int>(n) : renumber(labels);
    communicator_.broadcast(std::as_writable_bytes(std::span{nodes_}));
    seats_ = runtime::gather_values<Seat>(communicator_, std::span<const Seat>{&seat_, 1});
    seats_.resize(n);
    communicator_.broadcast(std::as_writable_bytes(std::span{seats_}));
    void* bound = nullptr;
    int found = 0;
    check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&bound), &found), "MPI_Comm_get_attr");
    if (found != 0) largest_tag_ = *static_cast<int*>(bound);
  }

  int rank() const noexcept override { return communicator_.rank(); }
  int n_ranks() const noexcept override { return communicator_.n_ranks(); }
  const std::vector<int>& nodes() const noexcept override { return nodes_; }
  const std::vector<Seat>& seats() const noexcept override { return seats_; }

  std::unique_ptr<Channel> open_channel(int n_slots) override {
    const int tag = next_tag_;
    next_tag_ = next_tag_ == largest_tag_ ? 0 : next_tag_ + 1;
    return std::make_unique<MpiChannel>(communicator_.raw(), tag, n_slots);
  }

  std::unique_ptr<Transport> split(int color, int key) override {
    return std::make_unique<MpiTransport>(communicator_.split(color, key), node_, seat_, oversubscribed_);
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
  int node_;
  Seat seat_;
  bool oversubscribed_;
  std::vector<int> nodes_;
  std::vector<Seat> seats_;
  int next_tag_ = 0;
  int largest_tag_ = 32767;  // what the standard promises
};

}  // namespace

std::vector<Seat> seats(const runtime::Topology& topology) {
  std::vector<Seat> all;
  for (const runtime::Place& place : topology.places) all.push_back({place.socket, place.cache});
  return all;
}

std::unique_ptr<Transport> make_mpi_transport(const runtime::Communicator& world, const MpiTransportOptions& options) {
  // A node's label is the lowest rank on it; simulated nodes count on from there.
  const runtime::Communicator local = world.split_shared();
  const int lowest = runtime::broadcast_value(local, world.rank());
  const int group = options.ranks_per_node > 0 ? local.rank() / options.ranks_per_node : 0;
  const int label = lowest + group * world.n_ranks();
  const Seat seat = options.seats.empty() ? Seat{} : options.seats[static_cast<std::size_t>(world.rank())];
  return std::make_unique<MpiTransport>(runtime::Communicator::duplicate(world.raw()), label, seat,
                                        options.oversubscribed);
}

const runtime::Communicator* mpi_communicator(const Transport& transport) noexcept {
  const auto* over_mpi = dynamic_cast<const MpiTransport*>(&transport);
  return over_mpi != nullptr ? &over_mpi->communicator() : nullptr;
}

}  // namespace lockstep::comm
