#include "runtime/communicator_mpi.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "runtime/node_segment.hpp"
#include "runtime/session.hpp"

namespace lockstep::runtime {
namespace {

// MPI 3.1 counts are ints, and some libraries overflow well before: larger data travel in pieces of this many bytes,
// which also keeps every request small.
constexpr std::size_t largest_message = std::size_t{1} << 30;

// Up to this size a blocking send is faster and, in every MPI we know, does not wait for the receiver.
constexpr std::size_t largest_eager = 4096;

// Tags of channel messages are greater.
constexpr int control_tag = 0;

int rank_in(MPI_Comm communicator) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  return rank;
}

int size_of(MPI_Comm communicator) {
  int n_ranks = 0;
  check_mpi(MPI_Comm_size(communicator, &n_ranks), "MPI_Comm_size");
  return n_ranks;
}

bool is_mpi_finalized() noexcept {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

/// Calls `f(piece)` for consecutive pieces of `data` that fit one message.
template <class Byte, class F>
void for_each_message(std::span<Byte> data, F f) {
  for (std::size_t at = 0; at < data.size(); at += largest_message)
    f(data.subspan(at, std::min(largest_message, data.size() - at)));
}

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

}  // namespace

void fail_mpi(int code, const char* operation, core::SourceLocation location) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  int initialized = 0;
  MPI_Initialized(&initialized);
  int rank = -1;
  if (initialized != 0 && !is_mpi_finalized()) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string who = rank >= 0 ? fmt::format("rank {} on {}", rank, host_name()) : host_name();
  core::fail_system(fmt::format("{} failed on {}: {}", operation, who, text.data()), location);
}

void CommunicatorPolicy::destroy(Raw raw) noexcept {
  // Freeing is collective: a rank that leaves because of its own error would wait forever for the others.
  if (!is_mpi_finalized() && std::uncaught_exceptions() == 0) MPI_Comm_free(&raw);
}

MpiCommunicator::MpiCommunicator(MPI_Comm owned)
    : Communicator{rank_in(owned), size_of(owned)}, handle_{owned}, next_tag_{control_tag + 1} {
  check_mpi(MPI_Comm_set_errhandler(owned, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (n_ranks() == 1) return;  // nobody to send to
  void* bound = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&bound), &found), "MPI_Comm_get_attr");
  if (found != 0) largest_tag_ = *static_cast<int*>(bound);
}

std::unique_ptr<MpiCommunicator> MpiCommunicator::duplicate_of(MPI_Comm parent) {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(parent, &copy), "MPI_Comm_dup");
  return std::make_unique<MpiCommunicator>(copy);
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key) const {
  core::require(color >= 0, "the color of a split is not negative");
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(raw(), color, key, &part), "MPI_Comm_split");
  return std::make_unique<MpiCommunicator>(part);
}

std::unique_ptr<Communicator> MpiCommunicator::split_shared() const {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(raw(), MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  return std::make_unique<MpiCommunicator>(node);
}

void MpiCommunicator::barrier() const { check_mpi(MPI_Barrier(raw()), "MPI_Barrier"); }

bool MpiCommunicator::await_all(std::optional<core::Seconds> patience, const core::Clock& clock) const {
  MPI_Request all_here = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(raw(), &all_here), "MPI_Ibarrier");
  const core::Timer since{clock};
  for (int is_done = 0; patience;) {
    check_mpi(MPI_Test(&all_here, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done != 0) return true;
    if (since.elapsed().value > patience->value) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  check_mpi(MPI_Wait(&all_here, MPI_STATUS_IGNORE), "MPI_Wait");
  return true;
}

void MpiCommunicator::broadcast(std::span<std::byte> data, int root) const {
  for_each_message(data, [&](auto piece) {
    check_mpi(MPI_Bcast(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, root, raw()), "MPI_Bcast");
  });
}

std::unique_ptr<Channel> MpiCommunicator::open_channel(int n_slots) {
  const int tag = next_tag_;
  next_tag_ = next_tag_ == largest_tag_ ? control_tag + 1 : next_tag_ + 1;
  return std::make_unique<MpiChannel>(raw(), tag, n_slots);
}

std::unique_ptr<SharedSegment> MpiCommunicator::share(std::size_t bytes) { return share_on_node(*this, bytes); }

// A rank that yields to other work may lose a whole time slice, but one that sleeps is woken: with other work on both
// cores, 2 ranks take 59 ms for 16 MiB if they yield, 8 ms if they sleep. If ranks share cores, yielding gives a core
// to a rank that has work: 4 ranks on 2 cores take 2.5 us for 8 B if they yield, 105 us if they sleep.
void MpiCommunicator::relax(std::uint64_t, bool is_crowded) {
  if (is_crowded)
    sched_yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds{20});
}

void MpiCommunicator::gather_short(std::span<const std::byte> block, std::span<std::byte> blocks, int root) const {
  const int n = static_cast<int>(block.size());
  check_mpi(MPI_Gather(block.data(), n, MPI_BYTE, blocks.data(), n, MPI_BYTE, root, raw()), "MPI_Gather");
}

void MpiCommunicator::send(std::span<const std::byte> data, int to) const {
  for_each_message(data, [&](auto piece) {
    check_mpi(MPI_Send(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, to, control_tag, raw()), "MPI_Send");
  });
}

void MpiCommunicator::receive(std::span<std::byte> data, int from) const {
  for_each_message(data, [&](auto piece) {
    check_mpi(
        MPI_Recv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, from, control_tag, raw(), MPI_STATUS_IGNORE),
        "MPI_Recv");
  });
}

}  // namespace lockstep::runtime
