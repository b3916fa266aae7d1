// Whether every byte of a shard folder is what it was when it was written.
// Invariant: finds every single-byte change of every file, and says which samples it touches.
// Used by `lockstep shard verify`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::data {

/// One defect, such as a damaged, missing or surplus file, as a user reads it: file, array, chunk, samples, expected,
/// found.
struct Damage {
  std::string file;
  std::string text;
};

struct VerifyResult {
  std::vector<Damage> damages{};  ///< on rank 0, in the order of the manifest
  std::uint64_t n_files = 0;
  std::uint64_t n_samples = 0;
  std::uint64_t bytes = 0;
  bool is_stopped = false;
  /// The error of a file that this rank cannot read, which says nothing about the set.
  std::optional<core::Error> unreadable{};
};

/// Collective: reads every file once, shards dealt to ranks; per shard the digest, and if that differs the index and
/// every CRC, to name the samples. Also: surplus files, and (as a defect of the content) labels out of range of the
/// classes. `progress(bytes done, bytes in all)`, on every rank, may stop it by returning false.
VerifyResult verify(const std::string& folder, const runtime::Communicator& world,
                    const std::function<bool(std::uint64_t, std::uint64_t)>& progress);

}  // namespace lockstep::data
