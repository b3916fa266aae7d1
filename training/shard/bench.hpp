// The options and results of `lockstep shard bench`.
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

/// In the order of measuring; each stage contains the work of the previous ones, except augment, which is measured
/// alone.
enum class Stage { copy, pread, read, augment, loader };
inline constexpr std::array<Stage, 5> all_stages{Stage::copy, Stage::pread, Stage::read, Stage::augment, Stage::loader};
[[nodiscard]] std::string_view name(
    Stage stage) noexcept;  ///< in results: "copy", "pread", "read", "augment", "loader"

/// The work of one repeat of a stage: of one rank, or of all together.
struct Work {
  double time_s = 0;
  double n_samples = 0;
  double bytes_stored = 0;     ///< read from files
  double bytes_delivered = 0;  ///< written for the next stage, or the trainer
};

/// The repeats of one stage: rates from medians of times, low and high from their 95 % interval.
struct StageResult {
  Stage stage{};
  int n_repeats = 0;
  core::Summary us_per_sample{};
  double stored_bytes_per_sample = 0;
  double delivered_bytes_per_sample = 0;

  [[nodiscard]] double samples_per_s() const noexcept { return 1e6 / us_per_sample.median; }
  [[nodiscard]] double stored_GBps() const noexcept { return stored_bytes_per_sample * samples_per_s() * 1e-9; }
  [[nodiscard]] double delivered_GBps() const noexcept { return delivered_bytes_per_sample * samples_per_s() * 1e-9; }
  /// The bytes that count for a limit of memory speed: delivered ones, or read ones for stages that deliver none.
  [[nodiscard]] double moved_GBps() const noexcept;
};

/// Returns nothing if nothing could be measured (too few samples in too short a time).
[[nodiscard]] std::optional<StageResult> summarize(Stage stage, const std::vector<Work>& repeats);

/// A part of one sample's time on the whole path, in microseconds.
struct Share {
  std::string_view part;
  double us = 0;
};

struct BenchReport {
  std::vector<StageResult> stages{};  ///< in the order of all_stages, those that could be measured
  data::LoaderStats loader{};         ///< of rank 0
  int n_ranks = 1;
  int n_threads = 1;  ///< of each rank, in every stage
  std::uint64_t n_samples = 0;
  bool is_encoded = false;  ///< image files, which even a loader with the set in memory must decode
  bool was_warmed = false;
  bool is_complete = true;

  [[nodiscard]] const StageResult* find(Stage stage) const noexcept;
  /// The shares of the whole path; empty unless all stages were measured.
  [[nodiscard]] std::vector<Share> shares() const;
};

/// The part that takes most of a sample's time.
[[nodiscard]] Share binding(const std::vector<Share>& shares);

[[nodiscard]] std::string describe(const BenchReport& report);
[[nodiscard]] std::string to_json(const BenchReport& report, const BenchOptions& options,
                                  const runtime::Environment& environment);

}  // namespace lockstep::training::shard
