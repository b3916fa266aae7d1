// What `lockstep shard bench` is asked for and what it finds.
// Invariant: times are those of the slowest rank; rates are derived from them at the very end.
// Used by bench.cpp, bench_stages.cpp and bench_report.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/statistics.hpp"
#include "data/load/loader.hpp"
#include "runtime/environment.hpp"

namespace lockstep::training::shard {

struct BenchOptions {
  std::string folder;
  std::string stage{};  ///< folder of each node to copy the set to; empty: none
  std::string split{};  ///< empty: the first
  std::uint64_t batch = 64;
  data::Order order = data::Order::keyed;
  std::uint64_t seed = 1;
  std::uint64_t window_chunks = 16;
  std::string augment{};
  std::string dtype{};  ///< empty: float32 for bytes and floats, else as stored
  data::ChannelOrder layout = data::ChannelOrder::nchw;
  int threads = -1;
  data::Cache cache = data::Cache::automatic;
  bool is_cold = false;
  core::Seconds seconds{3};  ///< per stage
  std::uint64_t epochs = 0;  ///< set: passes over the whole split per stage, instead of `seconds`
  std::string json{};
};

/// The layout's word on the command line.
[[nodiscard]] std::string_view name_of_layout(data::ChannelOrder layout) noexcept;

/// In the order they are measured; each contains the work of those before it but augment, which is measured alone.
enum class Stage { copy, pread, read, augment, loader };
inline constexpr std::array<Stage, 5> all_stages{Stage::copy, Stage::pread, Stage::read, Stage::augment, Stage::loader};
[[nodiscard]] std::string_view name(
    Stage stage) noexcept;  ///< in results: "copy", "pread", "read", "augment", "loader"

/// What one repeat of a stage did: of one rank, or of all together.
struct Work {
  double time_s = 0;
  double n_samples = 0;
  double bytes_stored = 0;     ///< read from files
  double bytes_delivered = 0;  ///< written to where the next stage, or the trainer, finds it
};

/// The repeats of one stage; rates from medians of times, low and high from their 95 % interval.
struct StageResult {
  Stage stage{};
  int n_repeats = 0;
  core::Summary us_per_sample{};
  double stored_bytes_per_sample = 0;
  double delivered_bytes_per_sample = 0;

  [[nodiscard]] double samples_per_s() const noexcept { return 1e6 / us_per_sample.median; }
  [[nodiscard]] double stored_GBps() const noexcept { return stored_bytes_per_sample * samples_per_s() * 1e-9; }
  [[nodiscard]] double delivered_GBps() const noexcept { return delivered_bytes_per_sample * samples_per_s() * 1e-9; }
  /// What a limit of memory speed counts: bytes delivered, and of stages that deliver none, bytes read.
  [[nodiscard]] double moved_GBps() const noexcept;
};

/// Nothing could be measured (too few samples in too short a time): an empty optional.
[[nodiscard]] std::optional<StageResult> summarize(Stage stage, const std::vector<Work>& repeats);

/// Where the time of one sample on the whole path goes, in microseconds.
struct Share {
  std::string_view part;
  double us = 0;
};

struct BenchReport {
  std::vector<StageResult> stages{};  ///< by all_stages, those that could be measured
  data::LoaderStats loader{};         ///< of rank 0
  int n_ranks = 1;
  int n_threads = 1;  ///< of each rank, in every stage
  std::uint64_t n_samples = 0;
  bool is_encoded = false;  ///< image files, which even a loader with the set in memory decodes
  bool was_warmed = false;
  bool is_complete = true;

  [[nodiscard]] const StageResult* find(Stage stage) const noexcept;
  /// Of the whole path; empty unless all stages were measured.
  [[nodiscard]] std::vector<Share> shares() const;
};

/// The part that takes most of the time of a sample.
[[nodiscard]] Share binding(const std::vector<Share>& shares);

[[nodiscard]] std::string describe(const BenchReport& report);
[[nodiscard]] std::string to_json(const BenchReport& report, const BenchOptions& options,
                                  const runtime::Environment& environment);

}  // namespace lockstep::training::shard
