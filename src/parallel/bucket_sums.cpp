#include "parallel/bucket_sums.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "comm/loops.hpp"
#include "comm/registry.hpp"
#include "parallel/sparse_sum.hpp"

namespace lockstep::parallel {
namespace {

// Places in a slice are numbered by 32-bit words.
constexpr std::size_t largest_sparse = std::numeric_limits<std::uint32_t>::max();

// Partial sums of a piece stay in the first-level cache between rounds of the tree.
constexpr std::size_t tree_piece = 2048;

std::byte* address(std::span<float> arena, std::size_t offset) {
  return std::as_writable_bytes(arena.subspan(offset)).data();
}

}  // namespace

BucketSums::BucketSums(comm::Transport& node, comm::Transport& between, NodeFlags& flags, BucketSumsSetting setting)
    : flags_{flags},
      setting_{std::move(setting)},
      has_messages_{setting_.n_nodes > 1},
      has_pool_{std::ranges::find(setting_.are_pooled, true) != setting_.are_pooled.end()},
      is_fused_{
          comm::choose({.n_elements = setting_.gradients[0].size(), .is_order_fixed = setting_.is_tree}, node.nodes())
              .is_fused},
      // An owner's own arena is in its local memory; a tree ends at the first rank.
      target_{setting_.gradients[setting_.is_tree ? 0 : static_cast<std::size_t>(node.rank())]} {
  addends_.reserve(setting_.gradients.size());
  for (std::size_t b = 0; b < setting_.shares.size(); ++b) {
    const Share& share = setting_.shares[b];
    touched_.reserve(setting_.rows->most_parts(share.summed));
    plans_.push_back(plan_between(between, share));
    if (const auto& plan = plans_.back())
      plan->bind(std::as_bytes(share.summed.of(target_)),
                 std::as_writable_bytes(setting_.are_pooled[b]
                                            ? setting_.sums[b]
                                            : (share.is_divided() ? share.updated : share.summed).of(target_)));
    auto& sources = sources_.emplace_back();
    if (setting_.are_pooled[b])
      sources.push_back(setting_.sums[b]);
    else if (sums_here(share.summed))
      sources.push_back(share.updated.of(target_));
    else
      for (const std::span<float> arena : setting_.gradients) sources.push_back(share.updated.of(arena));
  }
}

/// Short messages cost their number, not their bytes, so counting rows first would double the cost.
std::unique_ptr<comm::Plan> BucketSums::plan_between(comm::Transport& between, const Share& share) {
  const core::Slice& slice = share.summed;
  if (slice.count == 0 || !has_messages_) return nullptr;
  const comm::Call call{
      .collective = share.is_divided() ? comm::Collective::reduce_scatter : comm::Collective::all_reduce,
      .n_elements = slice.count,
      .is_order_fixed = setting_.is_tree,
      .cuts = share.cuts};
  const comm::Algorithm& algorithm = *comm::choose(call, between.nodes()).algorithm;
  const bool is_sparse = !setting_.is_tree && call.bytes() > comm::largest_short_message &&
                         slice.count <= largest_sparse && setting_.rows->has_rows(slice);
  if (!is_sparse) return comm::make_plan(algorithm, between, call);
  if (!exchange_) {
    later_ = between.split(0, between.rank());
    exchange_ = std::make_unique<PartsExchange>(*later_);
  }
  return std::make_unique<SparseSum>(between, *later_, *exchange_, *setting_.rows, slice, algorithm);
}

void BucketSums::ready(std::size_t n) {
  flags_.publish(Stage::gradients, count(n));
  progress();
}

void BucketSums::begin_rest() {
  flags_.publish(Stage::gradients, count(setting_.n_buckets + 1));
  flags_.await_all(Stage::gradients, count(setting_.n_buckets + 1), [&] { progress(); });
  while (n_begun_ < setting_.shares.size()) begin(n_begun_++);
}

void BucketSums::finish() {
  for (; n_finished_ < n_begun_; ++n_finished_)
    if (const auto& plan = plans_[n_finished_]) flags_.wait(runtime::Wait::bucket, n_finished_, [&] { plan->wait(); });
  publish_sums();
}

/// A rank that owns nothing sums nothing.
void BucketSums::publish_sums() noexcept {
  if (has_pool_)
    flags_.publish(Stage::sums,
                   n_steps_ * setting_.n_buckets + (setting_.shares.empty() ? setting_.n_buckets : n_finished_));
}

void BucketSums::end_step() noexcept {
  ++n_steps_;
  n_begun_ = 0;
  n_finished_ = 0;
}

void BucketSums::progress() {
  if (!overlaps()) return;
  while (n_begun_ < setting_.shares.size() && flags_.all_reached(Stage::gradients, count(n_begun_ + 1)))
    begin(n_begun_++);
  while (n_finished_ < n_begun_ && (!plans_[n_finished_] || plans_[n_finished_]->test())) ++n_finished_;
  publish_sums();
}

void BucketSums::begin(std::size_t bucket) {
  const core::Slice& slice = setting_.shares[bucket].summed;
  if (setting_.are_pooled[bucket])
    sum_pooled(bucket);
  else if (!sums_here(slice))
    return;
  else if (setting_.is_tree)
    sum_in_tree(slice);
  else
    sum_in_order(slice);
  if (plans_[bucket]) plans_[bucket]->start({});
}

/// Whether `slice` is summed into target_ before the optimizer reads it.
bool BucketSums::sums_here(const core::Slice& slice) const noexcept {
  return has_messages_ || (setting_.gradients.size() > 1 && (!is_fused_ || setting_.rows->has_rows(slice)));
}

void BucketSums::sum_in_order(const core::Slice& slice) {
  if (setting_.gradients.size() == 1) return;
  setting_.rows->find_touched(slice, touched_);
  for (const core::Slice& part : touched_) sum_part(part, part.of(target_));
}

void BucketSums::sum_part(const core::Slice& part, std::span<float> to) {
  addends_.clear();
  for (const std::span<float> arena : setting_.gradients) addends_.push_back(address(arena, part.offset));
  const comm::Fold fold = comm::loops().find_fold(core::DType::float32, comm::ReduceOp::sum);
  fold({.first = std::as_writable_bytes(to).data()}, addends_, part.count, 1);
}

/// Between nodes, a plan takes the node's sum on from the gradients of one rank.
void BucketSums::sum_pooled(std::size_t bucket) {
  const core::Slice& slice = setting_.shares[bucket].summed;
  const std::span<float> sum = has_messages_ ? slice.of(target_) : setting_.sums[bucket];
  if (setting_.is_tree) {
    sum_in_tree(slice);
    if (!has_messages_) std::ranges::copy(slice.of(target_), sum.begin());
  } else if (setting_.gradients.size() > 1) {
    sum_part(slice, sum);
  }
}

// In place, because now only the owner touches its slice of any arena.
void BucketSums::sum_in_tree(const core::Slice& slice) const {
  const auto& gradients = setting_.gradients;
  const comm::Combine add = comm::loops().find_combine(core::DType::float32, comm::ReduceOp::sum);
  for (std::size_t at = slice.offset; at < slice.end(); at += tree_piece) {
    const std::size_t n = std::min(tree_piece, slice.end() - at);
    for (std::size_t distance = 1; distance < gradients.size(); distance *= 2) {
      for (std::size_t r = 0; r + distance < gradients.size(); r += 2 * distance) {
        std::byte* const sum = address(gradients[r], at);
        add(sum, sum, address(gradients[r + distance], at), n);
      }
    }
  }
}

}  // namespace lockstep::parallel
