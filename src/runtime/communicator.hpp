// A group of ranks: control operations, messages, shared memory, and groups within the group.
// Invariant: collectives on user data are in comm/, never here; users see no difference between MPI processes
// (communicator_mpi), threads of one process (communicator_threads) and a single process.
// Used by comm/, data/, parallel/, checkpoint/ and the programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/clock.hpp"
#include "core/units.hpp"

namespace lockstep::runtime {

/// A private message space between the ranks of a group; messages of one channel never match those of another. Messages
/// between two ranks arrive in the order sent, and the receiver knows their size. A slot holds one pending operation;
/// slots are numbered from 0 and may be reused after a wait.
class Channel {
 public:
  virtual ~Channel() = default;

  /// Posts a receive of exactly `data.size()` bytes.
  virtual void recv(int slot, int from, std::span<std::byte> data) = 0;
  /// Posts a send; `data` must not change until the slot is done.
  virtual void send(int slot, int to, std::span<const std::byte> data) = 0;
  /// Like send(), for a caller that will block on its receives anyway: the message may have left when this returns,
  /// which is faster.
  virtual void send_now(int slot, int to, std::span<const std::byte> data) = 0;
  virtual void wait(int slot) = 0;
  [[nodiscard]] virtual bool test(int slot) = 0;
};

/// Memory that all ranks of a group can read and write, one part per rank, zeroed at creation.
class SharedSegment {
 public:
  virtual ~SharedSegment() = default;
  /// The part of `rank`, at least the bytes asked for; aligned to 128 bytes, a pair of cache lines.
  [[nodiscard]] virtual std::span<std::byte> part(int rank) const = 0;
  /// Records that this rank reads this many bytes of another rank's part, for implementations that count.
  virtual void note_reading(int /*rank*/, std::size_t /*n_bytes*/) const {}
};

class MpiCommunicator;

/// The ranks of a group and how they reach each other. Operations on one communicator are called by one thread of a
/// rank at a time, and collective ones in the same order on all ranks.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// This process as the only rank, without MPI.
  [[nodiscard]] static const Communicator& alone() noexcept;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int n_ranks() const noexcept { return n_ranks_; }
  /// The MPI communicator, or null if the ranks are not MPI processes.
  [[nodiscard]] virtual const MpiCommunicator* mpi() const noexcept { return nullptr; }

  /// Collective: a second communicator of the same ranks; their messages never match each other.
  [[nodiscard]] virtual std::unique_ptr<Communicator> duplicate() const = 0;
  /// Collective: ranks with the same `color`, 0 or more, form a new communicator, ordered by `key`, then by rank.
  [[nodiscard]] virtual std::unique_ptr<Communicator> split(int color, int key) const = 0;
  /// Collective: forms a group of the ranks that can share memory with this one.
  [[nodiscard]] virtual std::unique_ptr<Communicator> split_shared() const = 0;

  /// Collective.
  virtual void barrier() const = 0;
  /// Collective, like barrier(); returns false if other ranks have not arrived after `patience` by `clock`, and then no
  /// other call may follow.
  [[nodiscard]] virtual bool await_all(std::optional<core::Seconds> patience, const core::Clock& clock) const = 0;
  /// Collective: broadcasts `data` of `root`; the size is the same everywhere.
  virtual void broadcast(std::span<std::byte> data, int root = 0) const = 0;
  /// Collective: broadcasts a string of any length from `root`.
  [[nodiscard]] std::string broadcast(std::string_view text, int root = 0) const;
  /// Collective: gathers one equal-sized block per rank, in rank order, at `root`; empty elsewhere.
  [[nodiscard]] std::vector<std::byte> gather(std::span<const std::byte> block, int root = 0) const;
  /// Collective: gathers one string per rank, in rank order, at `root`; empty elsewhere.
  [[nodiscard]] std::vector<std::string> gather(std::string_view text, int root = 0) const;
  /// Collective: returns the maximum over all ranks, on all ranks.
  [[nodiscard]] std::uint8_t highest(std::uint8_t mine) const;
  /// Collective: returns true on all ranks if `mine` is true on any.
  [[nodiscard]] bool any(bool mine) const { return highest(mine ? 1 : 0) != 0; }

  /// Collective.
  [[nodiscard]] virtual std::unique_ptr<Channel> open_channel(int n_slots) = 0;
  /// Collective over ranks that can share memory: shares `bytes` for each rank, zeroed and placed by its owner. The
  /// communicator must outlive it. Throws core::Error (system), the same on all ranks.
  [[nodiscard]] virtual std::unique_ptr<SharedSegment> share(std::size_t bytes) = 0;

  /// How often to look at a flag before relax(): rarely if ranks share cores, which `is_crowded` says.
  [[nodiscard]] virtual int spin_limit(bool is_crowded) const noexcept = 0;
  /// Called between looks at a flag, with the number of previous calls; throws if the group has failed.
  virtual void relax(std::uint64_t n_before, bool is_crowded) = 0;

 protected:
  Communicator(int rank, int n_ranks) noexcept : rank_{rank}, n_ranks_{n_ranks} {}

 private:
  /// Collective: like gather(), for blocks that are short in total.
  virtual void gather_short(std::span<const std::byte> block, std::span<std::byte> blocks, int root) const = 0;
  /// Blocking messages of any length between two ranks, in the order sent.
  virtual void send(std::span<const std::byte> data, int to) const = 0;
  virtual void receive(std::span<std::byte> data, int from) const = 0;

  [[nodiscard]] std::vector<std::string> gather_one_by_one(std::string_view text, std::span<const std::uint64_t> sizes,
                                                           int root) const;

  int rank_;
  int n_ranks_;
};

/// Collective: broadcasts a trivially copyable value of `root`.
template <class T>
[[nodiscard]] T broadcast_value(const Communicator& communicator, T value, int root = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  communicator.broadcast(std::as_writable_bytes(std::span{&value, 1}), root);
  return value;
}

/// Collective: gathers equal-length rows of every rank, concatenated in rank order, at rank 0; empty elsewhere.
template <class T>
[[nodiscard]] std::vector<T> gather_values(const Communicator& communicator, std::span<const T> row) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = communicator.gather(std::as_bytes(row));
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace lockstep::runtime
