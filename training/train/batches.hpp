// Batches for training and evaluation, from shards or made on the spot.
// Invariant: which samples make up a batch depends on recipe and rank count only as data/batch_plan says; values are
// those an executor takes: x float32 or int64 ids, y int64 classes or float32 numbers.
// Used by the trainer and by evaluate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/loader.hpp"
#include "data/spec.hpp"
#include "nn/executor.hpp"
#include "runtime/communicator.hpp"
#include "training/train/recipe.hpp"

namespace lockstep::training::train {

/// What a set is, before any batch.
struct DataInfo {
  data::SetSpec spec{};
  nn::Shape input{};            ///< of one sample as the executor gets it
  bool has_ids = false;         ///< x are whole numbers
  std::uint64_t n_samples = 0;  ///< of the split
};

/// One step's samples of this rank; valid until the next call of next().
struct Samples {
  nn::BatchView view{};
  std::uint64_t n_global = 0;  ///< of all ranks
};

class Batches {
 public:
  virtual ~Batches() = default;

  [[nodiscard]] virtual const DataInfo& info() const noexcept = 0;
  /// Steps of an epoch, the same on all ranks.
  [[nodiscard]] virtual std::uint64_t n_batches() const noexcept = 0;
  /// Samples of this rank in a batch, at most.
  [[nodiscard]] virtual std::uint64_t most() const noexcept = 0;
  /// Of the split on disk, as all ranks together read it in an epoch; 0 if it is not from there.
  [[nodiscard]] virtual std::uint64_t stored_bytes() const noexcept { return 0; }
  virtual void begin_epoch(std::uint64_t epoch) = 0;
  /// nullptr after the last batch.
  [[nodiscard]] virtual const Samples* next() = 0;
  /// Of this rank's samples since begin_epoch.
  [[nodiscard]] virtual const data::Ledger& ledger() const noexcept = 0;
};

/// Collective. nullptr if the split of evaluation is empty by the recipe, or not there. Throws core::Error as data::Loader.
[[nodiscard]] std::unique_ptr<Batches> open_batches(const runtime::Communicator& world, const Recipe& recipe,
                                                    bool is_evaluation);

}  // namespace lockstep::training::train
