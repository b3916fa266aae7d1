// Checks whether every byte of a shard folder equals what was written.
// Invariant: finds every single-byte change of every file, and names the affected samples.
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

/// One defect, such as a damaged, missing or surplus file, in a user's words: file, array, chunk, samples, expected,
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
  /// The error for a file that this rank cannot read, which says nothing about the set.
  std::optional<core::Error> unreadable{};
};

/// Collective: reads every file once, shards divided among ranks. Compares the digest of each shard, and if it differs
/// the index and every CRC, to name the samples. Also finds surplus files, and (as defects of the content) labels
/// outside the classes. `progress(bytes done, total bytes)`, on every rank, may stop it by returning false.
VerifyResult verify(const std::string& folder, const runtime::Communicator& world,
                    const std::function<bool(std::uint64_t, std::uint64_t)>& progress);

}  // namespace lockstep::data
