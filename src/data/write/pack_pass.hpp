// One rank's work while a set is packed: reads its samples and writes its shards.
// Invariant: makes no collective call; once one rank has failed or stopped, the others end within a chunk.
// Used by data/write/pack.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/write/doubts.hpp"
#include "data/write/pack.hpp"
#include "data/write/pack_plan.hpp"
#include "data/write/stop_flag.hpp"

namespace lockstep::data {

/// A finished shard, in a form that can be sent.
struct ShardRecord {
  std::uint64_t split = 0;
  std::uint64_t number = 0;
  std::uint64_t n_samples = 0;
  std::uint64_t bytes = 0;
  std::array<char, 32> digest{};
  io::Extent index{};
  std::uint64_t index_crc = 0;
  ValueFacts x{};
  ValueFacts y{};
  CountedSamples blank{};
  Tally tally{};
};

struct PassResult {
  std::vector<ShardRecord> shards{};
  std::vector<SampleDigest> digests{};  ///< of the samples of `shards` that are compared
  std::vector<BadRecord> bad{};         ///< their shards are not among `shards`
  bool is_stopped = false;
};

/// What all shards of a set have in common.
struct PackJob {
  Source& source;
  const PackOptions& options;
  ShardLayout layout;
  std::string folder;
  std::uint64_t compared_one_in = 0;  ///< 0: none is compared
};

class PackPass {
 public:
  PackPass(const PackJob& job, const PackPlan& plan, const PackProgress& progress)
      : job_{job}, plan_{plan}, progress_{progress}, stop_{job.folder} {}

  /// Tasks number `rank`, `rank` + `n_ranks`, ...
  [[nodiscard]] PassResult run(const std::vector<ShardTask>& tasks, std::size_t rank, std::size_t n_ranks);

 private:
  struct Chunk {
    std::vector<std::byte> x{};
    std::vector<std::byte> y{};
    std::vector<std::vector<BadRecord>> bad{};  ///< of each piece it is read in
    std::vector<Tally> tallies{};               ///< likewise
  };

  void run_tasks(const std::vector<ShardTask>& tasks, std::size_t rank, std::size_t n_ranks);
  void write_shard(const ShardTask& task);
  void copy_raw(const ShardTask& task, std::optional<ShardWriter>& writer, ShardRecord& record);
  void read_piece(std::size_t split, std::uint64_t chunk_first, Run part, Chunk& chunk, std::uint64_t number);
  void write_chunk(Chunk& chunk, Run samples, std::optional<ShardWriter>& writer, ShardRecord& record);
  void copy_encoded(const ShardTask& task, std::optional<ShardWriter>& writer, ShardRecord& record);
  void copy_encoded_sample(std::size_t split, std::uint64_t position, std::optional<ShardWriter>& writer,
                           ShardRecord& record);
  void read_run(std::size_t source_split, Run run, std::span<std::byte> x, std::span<std::byte> y,
                std::vector<BadRecord>& found) const;
  void note(std::size_t source_split, Run run, const BadSample& bad, std::vector<BadRecord>& found) const;
  void check_labels(std::size_t source_split, std::uint64_t first, std::span<const std::byte> y) const;
  void look_at(std::uint64_t position, std::span<const std::byte> x, std::span<const std::byte> y, ShardRecord& record);
  void tell_drill(std::string_view place) const;
  void advance(std::uint64_t n);

  const PackJob& job_;
  const PackPlan& plan_;
  const PackProgress& progress_;
  StopFlag stop_;
  PassResult result_{};
  std::uint64_t n_all_ = 0;
  std::uint64_t n_mine_ = 0;
  std::uint64_t n_done_ = 0;
  std::vector<std::byte> label_{};
  std::vector<SampleDigest> digests_{};  ///< of the shard that is being written
};

}  // namespace lockstep::data
