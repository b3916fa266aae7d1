// Communicators as owned values, with control-size operations only.
// Invariant: every MPI return code is checked; collectives on user data live in comm/, never here.
// Used by comm/ and the programs.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/handle.hpp"
#include "core/source_location.hpp"

namespace lockstep::runtime {

/// Throws core::Error (ExitCode::system) naming `operation`, rank, host and MPI's own text.
[[noreturn]] void fail_mpi(int code, const char* operation, core::SourceLocation location);

/// fail_mpi unless `code` is MPI_SUCCESS. Inline, as it is part of what is timed.
inline void check_mpi(int code, const char* operation,
                      core::SourceLocation location = core::SourceLocation::current()) {
  if (code != MPI_SUCCESS) [[unlikely]]
    fail_mpi(code, operation, location);
}

/// Policy of core::UniqueHandle; freeing is skipped once MPI is finalised.
struct CommunicatorPolicy {
  using Raw = MPI_Comm;
  static Raw null() noexcept { return MPI_COMM_NULL; }
  static void destroy(Raw raw) noexcept;
};

/// An MPI communicator with errors returned, not fatal; or, where MPI was not started, this process alone.
class Communicator {
 public:
  /// Collective: duplicates `parent`, so no message of ours can meet one of the caller's.
  static Communicator duplicate(MPI_Comm parent);
  /// Of this process alone, without MPI.
  static Communicator alone() noexcept { return Communicator{}; }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int n_ranks() const noexcept { return n_ranks_; }
  [[nodiscard]] MPI_Comm raw() const noexcept { return handle_.get(); }  ///< MPI_COMM_NULL where MPI was not started
  /// Collective.
  [[nodiscard]] Communicator duplicate() const { return is_alone() ? alone() : duplicate(raw()); }

  /// Collective: ranks with the same `color` form a new communicator, ordered by `key`, then by rank.
  [[nodiscard]] Communicator split(int color, int key) const;
  /// Local: the ranks here of those of `part`, a split of this one, in its order.
  [[nodiscard]] std::vector<int> ranks_of(const Communicator& part) const;
  /// Collective: the ranks that can share memory with this one.
  [[nodiscard]] Communicator split_shared() const;

  /// Collective.
  void barrier() const;
  /// Collective: `data` of `root` reaches all; the same size everywhere.
  void broadcast(std::span<std::byte> data, int root = 0) const;
  /// Collective: a string of any length from `root`.
  [[nodiscard]] std::string broadcast(std::string_view text, int root = 0) const;
  /// Collective: one equal-sized block per rank, in rank order, at `root`; empty elsewhere.
  [[nodiscard]] std::vector<std::byte> gather(std::span<const std::byte> block, int root = 0) const;
  /// Collective: one string per rank, in rank order, at `root`; empty elsewhere.
  [[nodiscard]] std::vector<std::string> gather(std::string_view text, int root = 0) const;
  /// Collective: the highest that any rank brings, everywhere.
  [[nodiscard]] std::uint8_t highest(std::uint8_t mine) const;
  /// Collective: true everywhere if `mine` is true anywhere.
  [[nodiscard]] bool any(bool mine) const { return highest(mine ? 1 : 0) != 0; }

 private:
  Communicator() noexcept = default;
  explicit Communicator(MPI_Comm owned);
  [[nodiscard]] bool is_alone() const noexcept { return !handle_; }
  [[nodiscard]] std::vector<std::string> gather_one_by_one(std::string_view text, std::span<const std::uint64_t> sizes,
                                                           int root) const;

  core::UniqueHandle<CommunicatorPolicy> handle_;
  int rank_ = 0;
  int n_ranks_ = 1;
};

/// Collective: a trivially copyable value of `root` reaches all.
template <class T>
[[nodiscard]] T broadcast_value(const Communicator& communicator, T value, int root = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  communicator.broadcast(std::as_writable_bytes(std::span{&value, 1}), root);
  return value;
}

/// Collective: equal-length rows of every rank, concatenated in rank order, at rank 0; empty elsewhere.
template <class T>
[[nodiscard]] std::vector<T> gather_values(const Communicator& communicator, std::span<const T> row) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = communicator.gather(std::as_bytes(row));
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace lockstep::runtime
