#include "training/train/evaluate.hpp"

#include <span>

namespace lockstep::training {
namespace {

/// All ranks have the same number of batches, though the last may be empty on some. So they communicate after the same
/// ones.
constexpr std::uint64_t batches_between_polls = 16;

std::optional<nn::LossSums> sums_of(const runtime::Communicator& world, Batches& batches, Learner& learner,
                                    const std::function<bool()>& is_stop_asked,
                                    const std::function<void(double share)>& on_batch) {
  nn::LossSums mine;
  batches.begin_epoch(0);
  std::uint64_t n_done = 0;
  while (const data::Batch* batch = batches.next()) {
    if (n_done++ % batches_between_polls == 0 && world.any(is_stop_asked())) return std::nullopt;
    mine += learner.sums();  // of the previous batch
    learner.evaluate(*batch);
    on_batch(static_cast<double>(n_done) / static_cast<double>(batches.n_batches()));
  }
  mine += learner.sums();
  nn::LossSums all;
  for (const nn::LossSums& sums : runtime::gather_values(world, std::span{&std::as_const(mine), 1})) {
    all += sums;
  }
  return runtime::broadcast_value(world, all);
}

}  // namespace

std::optional<nn::LossSums> evaluate_split(const runtime::Communicator& world, Batches& batches, Learner& learner,
                                           const std::function<bool()>& is_stop_asked,
                                           const std::function<void(double share)>& on_batch) {
  learner.statistics().use_mean();
  const std::optional<nn::LossSums> sums = sums_of(world, batches, learner, is_stop_asked, on_batch);
  learner.statistics().use_own();
  return sums;
}

}  // namespace lockstep::training
