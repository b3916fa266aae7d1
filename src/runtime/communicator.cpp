#include "runtime/communicator.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "runtime/node_segment.hpp"

namespace lockstep::runtime {
namespace {

// Above this total, the root receives rank by rank, because a tree would hold copies on the way.
constexpr std::size_t largest_gather = std::size_t{1} << 20;

/// The channel of a single process: it has no peer, so every message is an error.
class LoneChannel final : public Channel {
 public:
  void recv(int, int, std::span<std::byte>) override { fail(); }
  void send(int, int, std::span<const std::byte>) override { fail(); }
  void send_now(int, int, std::span<const std::byte>) override { fail(); }
  void wait(int) override {}
  bool test(int) override { return true; }

 private:
  [[noreturn]] static void fail() { core::fail_system("a process alone has nobody to send to"); }
};

/// A process outside MPI.
class LoneCommunicator final : public Communicator {
 public:
  LoneCommunicator() noexcept : Communicator{0, 1} {}

  std::unique_ptr<Communicator> duplicate() const override { return std::make_unique<LoneCommunicator>(); }
  std::unique_ptr<Communicator> split(int color, int) const override {
    core::require(color >= 0, "the color of a split is not negative");
    return std::make_unique<LoneCommunicator>();
  }
  std::unique_ptr<Communicator> split_shared() const override { return std::make_unique<LoneCommunicator>(); }
  void barrier() const override {}
  bool await_all(std::optional<core::Seconds>, const core::Clock&) const override { return true; }
  using Communicator::broadcast;
  void broadcast(std::span<std::byte>, int) const override {}
  std::unique_ptr<Channel> open_channel(int) override { return std::make_unique<LoneChannel>(); }
  std::unique_ptr<SharedSegment> share(std::size_t bytes) override { return share_on_node(*this, bytes); }
  int spin_limit(bool is_crowded) const noexcept override { return is_crowded ? 0 : 10'000; }
  void relax(std::uint64_t, bool) override {}

 private:
  void gather_short(std::span<const std::byte> block, std::span<std::byte> blocks, int) const override {
    std::ranges::copy(block, blocks.begin());
  }
  void send(std::span<const std::byte>, int) const override {}
  void receive(std::span<std::byte>, int) const override {}
};

}  // namespace

const Communicator& Communicator::alone() noexcept {
  static const LoneCommunicator communicator;
  return communicator;
}

std::string Communicator::broadcast(std::string_view text, int root) const {
  std::string result{rank_ == root ? text : std::string_view{}};
  result.resize(broadcast_value(*this, result.size(), root));
  broadcast(std::as_writable_bytes(std::span{result}), root);
  return result;
}

std::vector<std::byte> Communicator::gather(std::span<const std::byte> block, int root) const {
  const bool is_root = rank_ == root;
  const std::size_t total = block.size() * static_cast<std::size_t>(n_ranks_);
  std::vector<std::byte> blocks(is_root ? total : 0);
  if (total <= largest_gather) {
    gather_short(block, blocks, root);
  } else if (!is_root) {
    send(block, root);
  } else {
    std::byte* place = blocks.data();
    for (int rank = 0; rank < n_ranks_; ++rank, place += block.size()) {
      if (rank == root)
        std::memcpy(place, block.data(), block.size());
      else
        receive({place, block.size()}, rank);
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
  // Strings are padded to the longest: one collective instead of a message from each rank.
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
  if (rank_ != root) send(std::as_bytes(std::span{text}), root);
  std::vector<std::string> texts(sizes.size());
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    texts[rank].resize(sizes[rank]);
    if (static_cast<int>(rank) == root)
      texts[rank] = text;
    else
      receive(std::as_writable_bytes(std::span{texts[rank]}), static_cast<int>(rank));
  }
  return texts;
}

std::uint8_t Communicator::highest(std::uint8_t mine) const {
  const std::vector<std::byte> all = gather(std::as_bytes(std::span{&mine, 1}));
  const std::byte most = all.empty() ? std::byte{0} : *std::max_element(all.begin(), all.end());
  return broadcast_value(*this, std::to_integer<std::uint8_t>(most));
}

}  // namespace lockstep::runtime
