// Ranks as MPI processes.
// Invariant: every MPI return code is checked; errors are returned and not fatal; ranks of a node share memory without
// MPI.
// Used by session, algorithm `mpi` and the tests of MPI; everything else sees a Communicator.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::runtime {

/// Throws core::Error (ExitCode::system) naming `operation`, rank, host and MPI's own text.
[[noreturn]] void fail_mpi(int code, const char* operation, core::SourceLocation location);

/// Calls fail_mpi() unless `code` is MPI_SUCCESS. Inline, because it is part of the timed code.
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

class MpiCommunicator final : public Communicator {
 public:
  /// Collective: duplicates `parent`, so that our messages never match the caller's.
  [[nodiscard]] static std::unique_ptr<MpiCommunicator> duplicate_of(MPI_Comm parent);
  /// Takes ownership of `owned`.
  explicit MpiCommunicator(MPI_Comm owned);

  [[nodiscard]] MPI_Comm raw() const noexcept { return handle_.get(); }
  [[nodiscard]] const MpiCommunicator* mpi() const noexcept override { return this; }

  std::unique_ptr<Communicator> duplicate() const override { return duplicate_of(raw()); }
  std::unique_ptr<Communicator> split(int color, int key) const override;
  std::unique_ptr<Communicator> split_shared() const override;
  void barrier() const override;
  bool await_all(std::optional<core::Seconds> patience, const core::Clock& clock) const override;
  using Communicator::broadcast;
  void broadcast(std::span<std::byte> data, int root) const override;
  std::unique_ptr<Channel> open_channel(int n_slots) override;
  std::unique_ptr<SharedSegment> share(std::size_t bytes) override;
  int spin_limit(bool is_crowded) const noexcept override { return is_crowded ? 0 : 10'000; }
  void relax(std::uint64_t n_before, bool is_crowded) override;

 private:
  void gather_short(std::span<const std::byte> block, std::span<std::byte> blocks, int root) const override;
  void send(std::span<const std::byte> data, int to) const override;
  void receive(std::span<std::byte> data, int from) const override;

  core::UniqueHandle<CommunicatorPolicy> handle_;
  int next_tag_;
  int largest_tag_ = 32767;  // the standard guarantees it
};

}  // namespace lockstep::runtime
