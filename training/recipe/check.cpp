#include "training/recipe/check.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "training/recipe/keys.hpp"
#include "training/recipe/specs.hpp"
#include "training/recipe/words.hpp"

namespace lockstep::training {
namespace {

/// One recipe under examination; messages name the place of each key.
class Check {
 public:
  explicit Check(const ResolvedRecipe& resolved) : resolved_{resolved}, r_{resolved.recipe} {}

  void parts() const;
  void groups() const;
  void loss() const;
  void optimizer() const;
  void schedule() const;

 private:
  [[nodiscard]] std::string where(std::string_view key) const {
    const Origin& origin = resolved_.origins[*find_key(key)];
    return origin.where.empty() ? std::string{key} : origin.where;
  }

  [[noreturn]] void fail(std::string what, std::string_view key, std::string expected, std::string fix = "") const {
    core::fail_usage(
        {.what = std::move(what), .where = where(key), .expected = std::move(expected), .fix = std::move(fix)});
  }

  const ResolvedRecipe& resolved_;
  const Recipe& r_;
};

// The largest divisor of `n` that is at most `most`.
std::uint64_t largest_divisor(std::uint64_t n, std::uint64_t most) {
  std::uint64_t largest = 1;
  for (std::uint64_t divisor = 1; divisor <= n / divisor; ++divisor) {
    if (n % divisor != 0) continue;
    for (const std::uint64_t each : {divisor, n / divisor})
      if (each <= most) largest = std::max(largest, each);
  }
  return largest;
}

void Check::parts() const {
  if (r_.batch % r_.accumulate != 0)
    fail(fmt::format("a batch of {} cannot be divided into {} equal parts", r_.batch, r_.accumulate), "accumulate",
         fmt::format("a divisor of the batch, {}", r_.batch),
         fmt::format("--accumulate {}", largest_divisor(r_.batch, r_.accumulate)));
  if (!std::has_single_bit(r_.lanes))
    fail(fmt::format("{} lanes do not form a binary tree", r_.lanes), "lanes", "a power of two: 1, 2, 4, 8, ...",
         fmt::format("--lanes {}", std::bit_floor(r_.lanes)));
  const std::uint64_t part = r_.batch / r_.accumulate;
  if (r_.deterministic && part % r_.lanes != 0)
    fail(fmt::format("{} samples cannot be divided into {} equal lanes", part, r_.lanes), "lanes",
         fmt::format("lanes that divide {}", r_.accumulate > 1 ? "batch / accumulate" : "the batch"),
         fmt::format("--lanes {}, or --batch {}", std::gcd(part, r_.lanes),
                     (part / r_.lanes + 1) * r_.lanes * r_.accumulate));
}

void Check::groups() const {
  if (r_.bn_group == 0) return;
  const std::uint64_t part = least_part(r_);
  if (part % r_.bn_group == 0) return;
  std::string whole = fmt::format("the batch of {}", r_.batch);
  if (r_.accumulate > 1) whole += fmt::format(" in {} parts", r_.accumulate);
  if (r_.deterministic) whole += fmt::format(" in {} lanes", r_.lanes);
  fail(fmt::format("groups of {} samples do not divide {}", r_.bn_group, whole), "bn-group",
       fmt::format("a divisor of {}", part),
       fmt::format("--bn-group {}, or --batch {}", largest_divisor(part, r_.bn_group),
                   (part / r_.bn_group + 1) * r_.bn_group * (r_.batch / part)));
}

void Check::loss() const {
  const ModelWord& model = core::find_named(models, r_.model, "model", "");
  const bool is_of_classes = model.loss == nn::Loss::cross_entropy;
  if (r_.loss == model.loss || (is_of_classes && r_.loss == nn::Loss::nll)) return;
  // The softmax of a single output is 1: the tutorial's toy has a cross entropy of 0 and learns nothing.
  fail(fmt::format("the loss {} does not fit the model {}", word_of(r_.loss), r_.model), "loss",
       is_of_classes ? "cross_entropy or nll, because its outputs are classes" : "mse, because its outputs are numbers",
       "leave loss out");
}

void Check::optimizer() const {
  const optim::OptimizerSpec& optimizer = r_.optimizer;
  if (optimizer.nesterov && (optimizer.momentum == 0 || optimizer.dampening != 0))
    fail("Nesterov's momentum without momentum, or with dampening", "nesterov", "momentum above 0, and dampening 0",
         "--momentum 0.9");
}

void Check::schedule() const {
  if (r_.min_lr > r_.lr)
    fail(fmt::format("the learning rate would end at {}, but begins at {}", r_.min_lr, r_.lr), "min-lr", "at most lr");
  if (r_.schedule == optim::ScheduleKind::multistep && r_.milestones.empty())
    fail("no milestones", "schedule", "milestones for schedule multistep, such as [30, 60, 80]");
  const auto is_out_of_order = [](const Length& a, const Length& b) { return a.unit != b.unit || a.value >= b.value; };
  if (std::adjacent_find(r_.milestones.begin(), r_.milestones.end(), is_out_of_order) != r_.milestones.end())
    fail("milestones that do not ascend", "milestones", "one after the other, all in epochs or all in samples");
  const bool is_in_epochs = r_.warmup.unit == Length::Unit::epochs;
  const std::uint64_t whole = is_in_epochs ? r_.epochs : r_.samples;
  if (has_end(r_.schedule) && whole > 0 && r_.warmup.value >= static_cast<double>(whole))
    fail("the warm-up leaves no time for the schedule", "warmup",
         fmt::format("less than {} {}", whole, is_in_epochs ? "epochs" : "samples"), "--warmup 0");
}

}  // namespace

std::uint64_t least_part(const Recipe& recipe) noexcept {
  const std::uint64_t part = recipe.batch / recipe.accumulate / (recipe.deterministic ? recipe.lanes : 1);
  return std::max<std::uint64_t>(part, 1);
}

void check_cuts(const ResolvedRecipe& resolved) {
  const Check check{resolved};
  check.parts();
  check.groups();
}

void check_recipe(const ResolvedRecipe& resolved) {
  check_cuts(resolved);
  const Check check{resolved};
  check.loss();
  check.optimizer();
  check.schedule();
}

void require_data(const Recipe& recipe) {
  if (recipe.synthetic || !recipe.data.empty()) return;
  core::fail_usage({.what = fmt::format("{} has no data to train on", recipe.name),
                    .where = "--data",
                    .expected = "a folder of shards, or --synthetic for samples made from the seed",
                    .fix = "lockstep shard import makes a set from your data (lockstep shard import --help)"});
}

}  // namespace lockstep::training
