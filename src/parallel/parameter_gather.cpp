#include "parallel/parameter_gather.hpp"

#include "comm/registry.hpp"

namespace lockstep::parallel {

ParameterGather::ParameterGather(comm::Transport& between, NodeFlags& flags, std::span<float> parameters,
                                 std::span<const Share> shares, bool is_order_fixed)
    : flags_{flags} {
  for (const Share& share : shares) {
    auto& plan = plans_.emplace_back();
    if (!share.is_divided() || share.summed.empty()) continue;
    plan = comm::make_plan(between, {.collective = comm::Collective::all_gather,
                                     .n_elements = share.summed.count,
                                     .is_order_fixed = is_order_fixed,
                                     .cuts = share.cuts});
    plan->bind(std::as_bytes(share.updated.of(parameters)), std::as_writable_bytes(share.summed.of(parameters)));
  }
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

}  // namespace lockstep::parallel
