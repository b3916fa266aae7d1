#include "training/train/evaluate.hpp"

#include <span>

namespace lockstep::training::train {

nn::LossSums evaluate(const runtime::Communicator& world, Batches& batches, Learner& learner,
                      runtime::Watchdog& watchdog) {
  learner.average_statistics();
  nn::LossSums mine;
  batches.begin_epoch(0);
  while (const Samples* samples = batches.next()) {
    const nn::LossSums sums = learner.evaluate(samples->view);
    mine.loss += sums.loss;
    mine.n += sums.n;
    mine.n_top1 += sums.n_top1;
    mine.n_top5 += sums.n_top5;
    watchdog.beat();
  }
  nn::LossSums all;
  for (const nn::LossSums& sums : runtime::gather_values(world, std::span{&std::as_const(mine), 1})) {
    all.loss += sums.loss;
    all.n += sums.n;
    all.n_top1 += sums.n_top1;
    all.n_top5 += sums.n_top5;
  }
  return runtime::broadcast_value(world, all);
}

}  // namespace lockstep::training::train
