// The guard of parameters in devices' memory. Devices check their own memory, so replicas are only compared, unless
// ranks get what one rank alone has updated: then it also verifies that nothing changed between two steps.
// Invariant: hashes are computed on the device. Its member functions wait; those that hash need steps to be done.
// Used by the synchronizer of devices.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/device_memory.hpp"
#include "parallel/replica_guard.hpp"
#include "parallel/slot_hashes.hpp"

namespace lockstep::parallel {

class DeviceGuard {
 public:
  /// All must outlive it. `interval`: as SynchronizerOptions::guard_interval.
  DeviceGuard(comm::Transport& world, const DeviceDivision& division, const DeviceMemory& memory,
              std::uint64_t interval);

  /// The one that has found something.
  [[nodiscard]] const ReplicaGuard& found() const noexcept { return of_own_.has_changed() ? of_own_ : of_all_; }

  /// The parameters are those after `n_steps` steps, written by others. Returns whether to call record().
  [[nodiscard]] bool restart(std::uint64_t n_steps) noexcept;
  /// After each step. Returns whether to call record().
  [[nodiscard]] bool count_step(std::uint64_t n_steps) noexcept;
  void record();
  /// Before each step: whether to call verify().
  [[nodiscard]] bool has_to_verify() const noexcept { return is_recorded_ && divides_; }
  void verify();

 private:
  [[nodiscard]] std::vector<std::uint64_t> hash_all();
  [[nodiscard]] std::vector<std::uint64_t> hash_own();

  const DeviceMemory& memory_;
  bool divides_;
  bool is_recorded_ = false;  ///< and not yet verified
  SlotHashes all_{};          ///< of what passes read on all ranks
  SlotHashes whole_{};        ///< of float32 parameters that all ranks update, if `all_` is of 16-bit weights
  SlotHashes own_{};          ///< of what this rank alone has, in its own arrays
  ReplicaGuard of_all_, of_own_;
  runtime::Staging staging_{{1 << 16}};
};

}  // namespace lockstep::parallel
