// Groups: the ranks of a group reduce-scatter through shared memory. Then the owners of the same slice in all groups
// all-reduce it, all slices at the same time, and the groups gather through shared memory.
#include <algorithm>
#include <utility>
#include <vector>

#include "comm/algorithms/shm_plans.hpp"

namespace lockstep::comm {
namespace {

class GroupedPlan final : public Plan {
 public:
  GroupedPlan(Transport& world, const Call& call, std::span<const int> groups, Slicing slicing, FinishAcross finish) {
    const int group = groups[static_cast<std::size_t>(world.rank())];
    inside_ = world.split(group, world.rank());
    across_ = world.split(inside_->rank(), group);
    const std::vector<int> sizes = group_sizes(groups);
    slicing.n_owners = *std::min_element(sizes.begin(), sizes.end());
    slicing.finish_across = [this, finish = std::move(finish)](std::size_t n_elements) {
      return finish(*across_, n_elements);
    };
    plan_ = make_sliced_plan(*inside_, call, slicing);
  }

  void bind(std::span<const std::byte> input, std::span<std::byte> output) override { plan_->bind(input, output); }
  void run() override { plan_->run(); }
  void begin() override { plan_->start({}); }
  bool test() override { return plan_->test(); }
  void wait() override { plan_->wait(); }

 private:
  std::unique_ptr<Transport> inside_;
  std::unique_ptr<Transport> across_;  ///< owners of the same slice
  std::unique_ptr<Plan> plan_;
};

}  // namespace

std::vector<int> group_sizes(std::span<const int> groups) {
  std::vector<int> sizes;
  for (const int group : groups) {
    sizes.resize(std::max(sizes.size(), static_cast<std::size_t>(group) + 1));
    ++sizes[static_cast<std::size_t>(group)];
  }
  return sizes;
}

std::unique_ptr<Plan> make_grouped_plan(Transport& world, const Call& call, std::span<const int> groups,
                                        Slicing slicing, FinishAcross finish) {
  return std::make_unique<GroupedPlan>(world, call, groups, std::move(slicing), std::move(finish));
}

}  // namespace lockstep::comm
