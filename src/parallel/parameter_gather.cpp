#include "parallel/parameter_gather.hpp"

#include <utility>

namespace lockstep::parallel {

ParameterGather::ParameterGather(NodeFlags& flags, std::size_t n_buckets, const MakeGather& make) : flags_{flags} {
  for (std::size_t b = 0; b < n_buckets; ++b) plans_.push_back(make(b));
}

// Other nodes may wait for messages of earlier buckets.
void ParameterGather::start(std::size_t bucket) {
  while (n_finished_ < bucket && (!plans_[n_finished_] || plans_[n_finished_]->test())) ++n_finished_;
  if (plans_[bucket]) plans_[bucket]->start({});
}

void ParameterGather::finish() {
  for (; n_finished_ < plans_.size(); ++n_finished_)
    if (const auto& plan = plans_[n_finished_])
      flags_.wait(runtime::Wait::parameters, n_finished_, [&] { plan->wait(); });
  n_finished_ = 0;
}

UnitGather::UnitGather(NodeFlags& flags, const UnitTurns& turns, const BucketPlaces& places, const MakeGather& make)
    : flags_{flags}, held_{turns, places}, numbers_(turns.n_units()) {
  for (std::size_t unit = 0; unit < turns.n_units(); ++unit) {
    const auto bucket = places.bucket_of(unit);
    plans_.push_back(bucket ? make(*bucket) : nullptr);
  }
}

void UnitGather::begin_need(std::size_t unit, bool is_backward) {
  flags_.publish(Stage::needs, ++n_needs_);
  for (const std::size_t next : held_.need(unit, is_backward)) {
    numbers_[next] = ++n_gathers_;
    waiting_.push_back({next, n_needs_});
  }
  progress();
}

// A rank without a share only counts.
void UnitGather::progress() {
  std::size_t n = 0;
  for (; n < waiting_.size() && flags_.all_reached(Stage::needs, waiting_[n].after); ++n) {
    started_.push_back(waiting_[n].unit);
    if (const auto& plan = plans_[waiting_[n].unit]) plan->start({});
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(n));
  n = 0;
  while (n < started_.size() && (!plans_[started_[n]] || plans_[started_[n]]->test())) ++n;
  started_.erase(started_.begin(), started_.begin() + static_cast<std::ptrdiff_t>(n));
  n_finished_ += n;
  if (n > 0) flags_.publish(Stage::gathers, n_finished_);
}

}  // namespace lockstep::parallel
