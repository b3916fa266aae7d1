#include "runtime/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <numeric>

#include "core/error.hpp"
#include "runtime/session.hpp"

namespace lockstep::runtime {
namespace {

// MPI 3.1 counts are ints, and some libraries overflow well before: larger data travels in pieces of this many bytes.
constexpr std::size_t largest_message = std::size_t{1} << 30;
// Above this total, blocks are received rank by rank: a tree would hold copies on the way.
constexpr std::size_t largest_gather = std::size_t{1} << 20;
constexpr int gather_tag = 1;

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

void send(MPI_Comm comm, std::span<const std::byte> data, int to) {
  for_each_message(data, [&](auto piece) {
    check_mpi(MPI_Send(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, to, gather_tag, comm), "MPI_Send");
  });
}

void receive(MPI_Comm comm, std::span<std::byte> data, int from) {
  for_each_message(data, [&](auto piece) {
    check_mpi(
        MPI_Recv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, from, gather_tag, comm, MPI_STATUS_IGNORE),
        "MPI_Recv");
  });
}

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
  // Freeing is collective: a rank that leaves on an error of its own would wait for the others for ever.
  if (!is_mpi_finalized() && std::uncaught_exceptions() == 0) MPI_Comm_free(&raw);
}

Communicator::Communicator(MPI_Comm owned) : handle_{owned} {
  check_mpi(MPI_Comm_set_errhandler(owned, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(owned, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(owned, &n_ranks_), "MPI_Comm_size");
}

Communicator Communicator::duplicate(MPI_Comm parent) {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(parent, &copy), "MPI_Comm_dup");
  return Communicator{copy};
}

Communicator Communicator::split(int color, int key) const {
  core::require(color >= 0, "the color of a split is not negative");
  if (is_alone()) return alone();
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(raw(), color, key, &part), "MPI_Comm_split");
  return Communicator{part};
}

Communicator Communicator::split_shared() const {
  if (is_alone()) return alone();
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(raw(), MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  return Communicator{node};
}

std::vector<int> Communicator::ranks_of(const Communicator& part) const {
  if (is_alone()) return {0};
  MPI_Group mine = MPI_GROUP_NULL;
  MPI_Group its = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(raw(), &mine), "MPI_Comm_group");
  check_mpi(MPI_Comm_group(part.raw(), &its), "MPI_Comm_group");
  std::vector<int> ranks(static_cast<std::size_t>(part.n_ranks()));
  std::vector<int> members(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  check_mpi(MPI_Group_translate_ranks(its, part.n_ranks(), ranks.data(), mine, members.data()),
            "MPI_Group_translate_ranks");
  MPI_Group_free(&its);
  MPI_Group_free(&mine);
  return members;
}

void Communicator::barrier() const {
  if (!is_alone()) check_mpi(MPI_Barrier(raw()), "MPI_Barrier");
}

void Communicator::broadcast(std::span<std::byte> data, int root) const {
  if (is_alone()) return;
  for_each_message(data, [&](auto piece) {
    check_mpi(MPI_Bcast(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, root, raw()), "MPI_Bcast");
  });
}

std::string Communicator::broadcast(std::string_view text, int root) const {
  std::string result{rank_ == root ? text : std::string_view{}};
  result.resize(broadcast_value(*this, result.size(), root));
  broadcast(std::as_writable_bytes(std::span{result}), root);
  return result;
}

std::vector<std::byte> Communicator::gather(std::span<const std::byte> block, int root) const {
  if (is_alone()) return {block.begin(), block.end()};
  const bool is_root = rank_ == root;
  const std::size_t total = block.size() * static_cast<std::size_t>(n_ranks_);
  std::vector<std::byte> blocks(is_root ? total : 0);
  if (total <= largest_gather) {
    const int n = static_cast<int>(block.size());
    check_mpi(MPI_Gather(block.data(), n, MPI_BYTE, blocks.data(), n, MPI_BYTE, root, raw()), "MPI_Gather");
  } else if (!is_root) {
    send(raw(), block, root);
  } else {
    std::byte* place = blocks.data();
    for (int rank = 0; rank < n_ranks_; ++rank, place += block.size()) {
      if (rank == root)
        std::memcpy(place, block.data(), block.size());
      else
        receive(raw(), {place, block.size()}, rank);
    }
  }
  return blocks;
}

std::vector<std::string> Communicator::gather(std::string_view text, int root) const {
  const std::uint64_t size = text.size();
  const std::vector<std::byte> size_bytes = gather(std::as_bytes(std::span{&size, 1}), root);
  std::vector<std::uint64_t> sizes(size_bytes.size() / sizeof(size));
  if (!sizes.empty()) std::memcpy(sizes.data(), size_bytes.data(), size_bytes.size());
  std::uint64_t longest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  longest = broadcast_value(*this, longest, root);
  if (longest * static_cast<std::uint64_t>(n_ranks_) > largest_gather) return gather_one_by_one(text, sizes, root);
  // All as long as the longest: one collective instead of a message from each rank.
  std::string padded{text};
  padded.resize(longest);
  const std::vector<std::byte> blocks = gather(std::as_bytes(std::span{padded}), root);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank)
    texts.emplace_back(reinterpret_cast<const char*>(blocks.data()) + rank * longest, sizes[rank]);
  return texts;
}

std::vector<std::string> Communicator::gather_one_by_one(std::string_view text, std::span<const std::uint64_t> sizes,
                                                         int root) const {
  if (rank_ != root) send(raw(), std::as_bytes(std::span{text}), root);
  std::vector<std::string> texts(sizes.size());
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    texts[rank].resize(sizes[rank]);
    if (static_cast<int>(rank) == root)
      texts[rank] = text;
    else
      receive(raw(), std::as_writable_bytes(std::span{texts[rank]}), static_cast<int>(rank));
  }
  return texts;
}

std::uint8_t Communicator::highest(std::uint8_t mine) const {
  const std::vector<std::byte> all = gather(std::as_bytes(std::span{&mine, 1}));
  const std::byte most = all.empty() ? std::byte{0} : *std::max_element(all.begin(), all.end());
  return broadcast_value(*this, std::to_integer<std::uint8_t>(most));
}

}  // namespace lockstep::runtime
