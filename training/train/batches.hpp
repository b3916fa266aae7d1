// Batches for training and evaluation, from shards or synthetic.
// Invariant: the samples of a batch depend only on recipe and rank count, as in data/load/batch_plan. They have the
// form that executors take: x float32, int64 ids or pixels, y int64 classes or float32 numbers.
// Used by the trainer and by evaluate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/format/spec.hpp"
#include "data/load/loader.hpp"
#include "nn/device.hpp"
#include "nn/graph/network.hpp"
#include "runtime/communicator.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/record.hpp"

namespace lockstep::training {

/// Facts about a set, before any batch.
struct DataInfo {
  data::SetSpec spec{};
  nn::Shape input{};        ///< of one sample, as the network takes it
  bool are_pixels = false;  ///< samples are pixels, which the device converts to that
  /// For each column of x in the whole set, ids are below this number; empty if the model takes no ids.
  std::vector<std::uint64_t> n_ids{};
  std::uint64_t n_samples = 0;        ///< of the split
  std::uint64_t stored_bytes = 0;     ///< of the split on disk; 0 if it is synthetic
  std::string split{};                ///< its name; empty if it is synthetic
  std::vector<std::string> splits{};  ///< of the set
};

/// The loader of a split, and the facts that are known before any batch.
class Batches final : public data::Loader {
 public:
  /// `info`: everything except what the loader knows.
  Batches(data::Loader loader, DataInfo info) : Loader{std::move(loader)}, info_{std::move(info)} {
    info_.input = augment().output().shape;
    info_.are_pixels = keeps_pixels();
  }

  [[nodiscard]] const DataInfo& info() const noexcept { return info_; }

 private:
  DataInfo info_;
};

struct OpenBatches {
  std::unique_ptr<Batches> training{};    ///< null if the run does not train
  std::unique_ptr<Batches> evaluation{};  ///< null if the recipe names no split for it, or the split does not exist
};

/// Checks whether a set fits a model and a machine: throws core::Error if not. `most`: as data::Loader::most().
using Fit = std::function<void(const DataInfo& info, std::uint64_t most)>;

/// Collective. Images stay pixels if `device` takes them. Calls `on_progress` periodically while the set is staged, and
/// while ids are counted. Calls `fit` before the set is staged, if it is, and if the model takes no ids, whose number
/// is known only after reading. Throws core::Error like check_set(), before anything is staged, and like data::Loader.
[[nodiscard]] OpenBatches open_batches(const runtime::Communicator& world, const nn::Device& device,
                                       const Recipe& recipe, bool is_trained, const Fit& fit,
                                       const std::function<void()>& on_progress);

/// The samples in all batches of an epoch; the order torch repeats some if the number of ranks does not divide them.
[[nodiscard]] std::uint64_t n_epoch_samples(const Recipe& recipe, const Batches& batches, int n_ranks) noexcept;

/// Collective: what all ranks have read so far, at rank 0. Either loader may be null.
[[nodiscard]] std::optional<DataRecord> gather_data(const runtime::Communicator& world, const Recipe& recipe,
                                                    const Batches* training, const Batches* evaluation);

}  // namespace lockstep::training
