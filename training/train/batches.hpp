// Batches for training and evaluation, from shards or synthetic.
// Invariant: the samples of a batch depend on recipe and rank count only as data/load/batch_plan says; they have the
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
#include "nn/network.hpp"
#include "runtime/communicator.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/record.hpp"

namespace lockstep::training {

/// What a set is, before any batch.
struct DataInfo {
  data::SetSpec spec{};
  nn::Shape input{};        ///< of one sample as the network takes it
  bool are_pixels = false;  ///< samples are given as pixels, which the device makes that of
  /// Ids from 0 to below these in the columns of x, in the whole set; empty if the model takes no ids.
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
  std::unique_ptr<Batches> training{};    ///< none if there is nothing to train
  std::unique_ptr<Batches> evaluation{};  ///< none if its split is empty by the recipe, or not there
};

/// Checks what a set means for a model and a machine: throws core::Error if it does not fit. `most`: as
/// data::Loader::most().
using Fit = std::function<void(const DataInfo& info, std::uint64_t most)>;

/// Collective. Images stay pixels if `device` takes them. `on_progress` is called periodically while the set is staged,
/// and while ids are counted. `fit` is called before the set is staged, if it is, and if its model takes no ids, whose
/// number is known only after reading. Throws core::Error like check_set(), before anything is staged, and like
/// data::Loader.
[[nodiscard]] OpenBatches open_batches(const runtime::Communicator& world, const nn::Device& device,
                                       const Recipe& recipe, bool is_trained, const Fit& fit,
                                       const std::function<void()>& on_progress);

/// In all batches of an epoch; the order torch repeats some if the number of ranks does not divide them.
[[nodiscard]] std::uint64_t n_epoch_samples(const Recipe& recipe, const Batches& batches, int n_ranks) noexcept;

/// Collective: what all ranks have read so far, at rank 0. Either loader may be missing.
[[nodiscard]] std::optional<DataRecord> gather_data(const runtime::Communicator& world, const Recipe& recipe,
                                                    const Batches* training, const Batches* evaluation);

}  // namespace lockstep::training
