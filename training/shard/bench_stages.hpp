// The stages of the loader's path, each measured alone with as many threads as the loader uses, and the whole path.
// Invariant: a stage does the loader's work for the same samples; ranks and threads share a split's chunks.
// Used by bench.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/load/loader.hpp"
#include "data/read/shard_set.hpp"
#include "runtime/device.hpp"
#include "training/shard/bench.hpp"

namespace lockstep::training::shard {

/// The length of a repeat.
struct Budget {
  core::Seconds time{};  ///< 0: without limit
  bool repeats = false;  ///< begin again at the end of the split, instead of ending there
};

class BenchStages {
 public:
  /// Collective, for the loader. Throws core::Error (usage) for an augmentation that does not fit the set.
  BenchStages(const BenchOptions& options, const runtime::Communicator& world,
              std::shared_ptr<const data::ShardSet> set);

  /// The work of this rank in one repeat.
  [[nodiscard]] Work run(Stage stage, const Budget& budget);
  /// Makes the loader forget what it has read, and this node's system the pages of the split's files.
  void drop_caches() const;
  /// Reads this rank's share of the files once.
  void warm_up() { static_cast<void>(pread({})); }

  [[nodiscard]] int n_threads() const noexcept { return n_threads_; }
  [[nodiscard]] core::Bytes stored() const noexcept { return stored_; }
  [[nodiscard]] std::uint64_t n_samples() const noexcept { return set_->n_samples(); }
  [[nodiscard]] bool is_encoded() const noexcept { return set_->spec().is_encoded(); }
  [[nodiscard]] data::LoaderStats loader_stats() const { return loader_->stats(); }

 private:
  /// Samples that are read together: a chunk, or a few image files.
  struct Unit {
    std::size_t shard = 0;
    std::uint64_t first = 0;  ///< among all samples of the split
    std::uint64_t n = 0;
    core::Bytes begin{};  ///< this unit's share of the file
    core::Bytes end{};
  };
  using OnUnit = std::function<void(const Unit&, Work&)>;
  /// A stored sample in memory, with its pixels if it is encoded.
  struct Sample {
    std::vector<std::byte> x{};
    std::uint64_t height = 0;
    std::uint64_t width = 0;
  };

  [[nodiscard]] Work copy(const Budget& budget);
  [[nodiscard]] Work pread(const Budget& budget);
  [[nodiscard]] Work read(const Budget& budget);
  [[nodiscard]] Work augment(const Budget& budget);
  [[nodiscard]] Work load(const Budget& budget);

  [[nodiscard]] Unit unit(std::uint64_t number) const;
  /// Each thread processes its share of the units; `make` makes the function that a thread applies to a unit.
  [[nodiscard]] Work over_units(const Budget& budget, const std::function<OnUnit()>& make) const;
  [[nodiscard]] Work on_threads(const std::function<Work(int thread)>& body) const;
  void read_unit(const Unit& unit, std::span<std::byte> x, std::span<std::byte> y, Work& work) const;
  [[nodiscard]] Sample fetch(std::uint64_t sample) const;
  [[nodiscard]] std::uint64_t channels() const;

  int rank_;
  int n_ranks_;
  std::shared_ptr<const data::ShardSet> set_;
  std::string split_;
  std::unique_ptr<data::Loader> loader_;
  int n_threads_ = 1;
  data::ChannelOrder layout_;
  core::Bytes stored_{};
  std::uint64_t unit_samples_ = 1;
  std::vector<std::uint64_t> first_units_{};  ///< by shard, followed by their number
  std::vector<Sample> samples_{};             ///< for `augment`
  runtime::Buffer copy_source_{};
  std::uint64_t epoch_ = 0;
};

}  // namespace lockstep::training::shard
