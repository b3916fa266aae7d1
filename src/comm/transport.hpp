// What an algorithm needs from the machine: messages between ranks, memory shared on a node, subgroups.
// Invariant: algorithms see ranks only through this interface, so they run unchanged over MPI processes and over
// threads.
// Used by the algorithms, parallel/ and the programs; implemented by transport_mpi and transport_threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::comm {

/// A private message space between the ranks of a transport; no message of one channel meets one of another.
/// Messages between two ranks arrive in the order sent, and the receiver knows their size.
/// A slot holds one pending operation; slots are numbered from 0 and may be reused once waited for.
class Channel {
 public:
  virtual ~Channel() = default;

  /// Posts a receive of exactly `data.size()` bytes.
  virtual void recv(int slot, int from, std::span<std::byte> data) = 0;
  /// Posts a send; `data` must stay as it is until the slot is done.
  virtual void send(int slot, int to, std::span<const std::byte> data) = 0;
  /// As send(), for a caller that will block on its receives anyway: may return with the message already gone, which is
  /// faster.
  virtual void send_now(int slot, int to, std::span<const std::byte> data) = 0;
  virtual void wait(int slot) = 0;
  [[nodiscard]] virtual bool test(int slot) = 0;
};

/// Memory that all ranks of a transport can read and write, one part per rank, zeroed at creation.
class SharedSegment {
 public:
  virtual ~SharedSegment() = default;
  /// The part of `rank`, at least the bytes asked for; aligned to 128 bytes, a pair of cache lines.
  [[nodiscard]] virtual std::span<std::byte> part(int rank) const = 0;
  /// Says that this rank reads so many bytes of another's part: for transports that count.
  virtual void note_reading(int /*rank*/, std::size_t /*n_bytes*/) const {}
};

/// Where in its node a rank runs, as numbers that are equal for ranks that share the thing, and where nobody knows.
struct Seat {
  int socket = 0;
  int cache = 0;  ///< the last-level cache
};

/// A group of ranks and how they reach each other.
class Transport {
 public:
  virtual ~Transport() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int n_ranks() const noexcept = 0;
  /// Node index of every rank, counted from 0 in order of the lowest rank; ranks of one node can share memory.
  [[nodiscard]] virtual const std::vector<int>& nodes() const noexcept = 0;
  [[nodiscard]] int n_nodes() const noexcept;
  /// Without those that are pretended: as libraries count them that look for themselves.
  [[nodiscard]] virtual int n_real_nodes() const noexcept { return n_nodes(); }
  /// Of every rank.
  [[nodiscard]] virtual const std::vector<Seat>& seats() const noexcept = 0;

  /// Collective.
  [[nodiscard]] virtual std::unique_ptr<Channel> open_channel(int n_slots) = 0;
  /// Collective: ranks with equal `color` form a group, ordered by `key`, then rank. The parent must outlive it.
  [[nodiscard]] virtual std::unique_ptr<Transport> split(int color, int key) = 0;
  /// Collective over ranks of one node: `bytes` for each rank, zeroed and placed by its owner. The transport must
  /// outlive it.
  [[nodiscard]] virtual std::unique_ptr<SharedSegment> share(std::size_t bytes) = 0;

  /// How many times to look at a flag before giving the processor away: few where ranks share cores.
  [[nodiscard]] virtual int spin_limit() const noexcept = 0;
  /// Called between looks once the limit is spent, with the number of such calls before; throws if the group has
  /// failed.
  virtual void relax(std::uint64_t n_before) = 0;
};

/// The nodes of ranks that have one each.
[[nodiscard]] std::vector<int> one_rank_each(int n_nodes);

/// Any labels, one per rank, as indices from 0 in order of first appearance.
[[nodiscard]] std::vector<int> renumber(const std::vector<int>& labels);

}  // namespace lockstep::comm
