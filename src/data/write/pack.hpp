// From a source to a folder of shards, by all ranks together.
// Invariant: the folder's bytes depend on source and options only, never on the number of ranks; it appears whole or
// not at all; each rank holds a few chunks in memory at most.
// Used by `lockstep shard import|pack|synth|split|merge`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "data/format/manifest.hpp"
#include "data/format/source.hpp"
#include "data/write/shard_writer.hpp"
#include "runtime/communicator.hpp"
#include "runtime/fault.hpp"

namespace lockstep::data {

struct PackOptions {
  std::string out{};  ///< the folder
  bool replace = false;
  core::Bytes shard_bytes{std::uint64_t{256} << 20};
  core::Bytes chunk_bytes{std::uint64_t{4} << 20};
  io::Filter filter = io::Filter::none;
  int level = 0;
  double val = 0;  ///< share of a source's only split that becomes "val", chosen by a permutation of `seed`
  std::uint64_t seed = 1;
  bool shuffle = false;  ///< store in an order permuted by `seed` (for sources sorted by class)
  bool skip_bad = false;
  bool compares = false;  ///< samples with one another: of what was made elsewhere, something may be twice
  /// Told of each write and sync of a shard, which it may let fail; null without faults.
  std::shared_ptr<runtime::Drill> drill{};
};

/// Called on every rank after every few samples: samples done and in all (of this rank's share, scaled to all; where
/// damaged samples are left out, once more from the start for what is packed again). Returns false to stop all ranks.
using PackProgress = std::function<bool(std::uint64_t n_done, std::uint64_t n_samples)>;

struct PackResult {
  Manifest manifest{};             ///< on rank 0
  std::vector<std::string> bad{};  ///< what was skipped, on rank 0
  std::vector<Remark> remarks{};   ///< what the source and the packing have to say, on rank 0; notes in the manifest
  bool is_stopped = false;         ///< by the progress function: nothing is left behind
};

/// Collective: writes `options.out`. Shards of all splits are dealt to the ranks in turn; rank 0 writes the manifest
/// last. Errors of any rank are thrown on all, and nothing is left behind: core::Error (usage) for damaged samples
/// without `skip_bad`, labels without a class and options that do not fit the source, (system) for a full disk.
PackResult pack(Source& source, const PackOptions& options, const runtime::Communicator& world,
                const PackProgress& progress);

}  // namespace lockstep::data
