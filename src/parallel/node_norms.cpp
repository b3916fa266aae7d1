#include "parallel/node_norms.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "comm/registry.hpp"

namespace lockstep::parallel {

BlockGather::BlockGather(comm::Transport& between, std::vector<std::vector<core::Slice>> runs, bool is_order_fixed)
    : runs_{std::move(runs)} {
  for (const auto& of_part : runs_) {
    cuts_.push_back(cuts_.back());
    for (const core::Slice& run : of_part) cuts_.back() += run.count;
  }
  message_.resize(cuts_.back());
  const comm::Call call{.collective = comm::Collective::all_gather,
                        .dtype = core::DType::float64,
                        .n_elements = message_.size(),
                        .is_order_fixed = is_order_fixed,
                        .cuts = cuts_};
  mine_ = call.index_of_part(between.rank(), between.n_ranks());
  plan_ = comm::make_plan(between, call);
  const std::span<double> whole{message_};
  plan_->bind(std::as_bytes(call.part(between.rank(), between.n_ranks()).of(whole)), std::as_writable_bytes(whole));
}

void BlockGather::run(std::span<double> values) {
  auto at = message_.begin() + static_cast<std::ptrdiff_t>(cuts_[mine_]);
  for (const core::Slice& run : runs_[mine_]) at = std::ranges::copy(run.of(values), at).out;
  plan_->run();
  std::span<const double> rest{message_};
  for (const auto& of_part : runs_) {
    for (const core::Slice& run : of_part) {
      std::ranges::copy(rest.first(run.count), run.of(values).begin());
      rest = rest.subspan(run.count);
    }
  }
}

NodeNorms::NodeNorms(comm::Transport& node, comm::Transport& between, NodeFlags& flags, std::size_t n_slots,
                     std::vector<Piece> blocks, std::span<const Share> shares, bool is_order_fixed)
    : flags_{flags},
      blocks_{std::move(blocks)},
      gradient_{make_norms(node, between, shares, is_order_fixed, 1)},
      tensors_{make_norms(node, between, shares, is_order_fixed, 2)},
      of_slots_(2 * n_slots) {}

NodeNorms::Norms NodeNorms::make_norms(comm::Transport& node, comm::Transport& between, std::span<const Share> shares,
                                       bool is_order_fixed, std::size_t width) const {
  Norms norms{SharedArray<double>{node, width * blocks_.size()}, nullptr};
  std::vector<std::vector<core::Slice>> runs(static_cast<std::size_t>(between.n_ranks()));
  const auto place = [&](std::size_t offset) { return width * first_block({offset, 0}); };
  for (const Share& share : shares) {
    for (std::size_t part = 0; part + 1 < share.cuts.size(); ++part) {
      const std::size_t begin = place(share.summed.offset + share.cuts[part]);
      runs[part].push_back({begin, place(share.summed.offset + share.cuts[part + 1]) - begin});
    }
  }
  if (std::ranges::any_of(shares, &Share::is_divided))
    norms.gather = std::make_unique<BlockGather>(between, std::move(runs), is_order_fixed);
  return norms;
}

std::size_t NodeNorms::first_block(const core::Slice& slice) const noexcept {
  const auto at = std::partition_point(blocks_.begin(), blocks_.end(),
                                       [&](const Piece& block) { return block.slice.offset < slice.offset; });
  return static_cast<std::size_t>(at - blocks_.begin());
}

void NodeNorms::put_gradient(std::size_t first_block, std::span<const double> norms) noexcept {
  std::copy(norms.begin(), norms.end(), gradient_.array.values().subspan(first_block).begin());
}

double NodeNorms::sum_gradient() {
  exchange(gradient_);
  return std::accumulate(gradient_.array.values().begin(), gradient_.array.values().end(), 0.0);
}

void NodeNorms::put_tensors(std::size_t first_block, std::span<const double> norms) noexcept {
  std::copy(norms.begin(), norms.end(), tensors_.array.values().subspan(2 * first_block).begin());
}

void NodeNorms::sum_tensors() {
  exchange(tensors_);
  std::fill(of_slots_.begin(), of_slots_.end(), 0.0);
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    for (std::size_t which = 0; which < 2; ++which)
      of_slots_[2 * blocks_[i].slot + which] += tensors_.array.values()[2 * i + which];
}

void NodeNorms::get_tensors(std::size_t first_block, std::span<double> norms) const noexcept {
  for (std::size_t i = 0; i < norms.size(); ++i) norms[i] = of_slots_[2 * blocks_[first_block + i / 2].slot + i % 2];
}

// The arrays are next written in the next step, after all ranks have arrived there and therefore read them.
void NodeNorms::exchange(Norms& norms) {
  if (norms.gather) flags_.wait(runtime::Wait::norms, 0, [&] { norms.gather->run(norms.array.values()); });
  flags_.publish(Stage::norms, ++n_exchanges_);
  flags_.await_all(Stage::norms, n_exchanges_);
}

}  // namespace lockstep::parallel
