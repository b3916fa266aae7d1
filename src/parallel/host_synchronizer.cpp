#include "parallel/host_synchronizer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/registry.hpp"
#include "core/crc32c.hpp"
#include "optim/clip.hpp"

namespace lockstep::parallel {
namespace {

std::vector<optim::Segment> segments_in(std::span<const Slot> slots, const core::Slice& slice) {
  std::vector<optim::Segment> segments;
  for (const Piece& block : blocks_in(slots, slice))
    segments.push_back({block.slice.seen_from(slice.offset), slots[block.slot].decays});
  return segments;
}

/// Which part a node has of slices that nodes divide: parts lie in the order of comm::Call::part().
std::size_t part_of(int node, std::size_t n_nodes, bool is_order_fixed) {
  return n_nodes == 1 ? 0 : comm::Call{.is_order_fixed = is_order_fixed}.index_of_part(node, static_cast<int>(n_nodes));
}

}  // namespace

HostSynchronizer::HostSynchronizer(comm::Transport& world, const std::vector<Slot>& slots,
                                   const SynchronizerOptions& options, Strategy strategy)
    : is_deterministic_{options.is_deterministic},
      needs_norms_{optim::Optimizer{options.optimizer, {}, 0}.needs_norms()},
      placement_{place(world.nodes(), options.is_deterministic)},
      world_rank_{world.rank()},
      node_index_{placement_.nodes[static_cast<std::size_t>(world.rank())]},
      sharding_{slots, plan_buckets(slots, options.buckets), static_cast<std::size_t>(placement_.n_owners), false,
                static_cast<std::size_t>(divides_states(strategy) ? placement_.n_nodes : 1)},
      node_{world.split(node_index_, world.rank())},
      between_{world.split(node_->rank(), node_index_)},
      shares_{sharding_.shares_of(owner(), part_of(node_index_, sharding_.n_nodes(), is_deterministic_))},
      flags_{*node_},
      parameters_{*node_, sharding_.n_elements()},
      gradients_{node_->share(sharding_.n_elements() * sizeof(float))},
      hashes_{*node_, static_cast<std::size_t>(node_->n_ranks())},
      norms_{*node_, *between_, flags_, sharding_.slots().size(), all_blocks(), shares_, is_deterministic_},
      rows_{*node_, sharding_.slots()},
      sums_{*node_, *between_, flags_, sums_setting(options.is_deterministic)},
      gather_{*between_, flags_, parameters(), shares_, is_deterministic_},
      guard_{sharding_.slots(), written_pieces(), world, *between_, options.guard_interval} {
  for (const Share& share : shares_) {
    const core::Slice& slice = share.updated;
    touched_.reserve(rows_.most_parts(slice));
    owned_.push_back({slice, share.is_divided() || node_index_ == 0,
                      optim::Optimizer{options.optimizer, segments_in(sharding_.slots(), slice), slice.count},
                      norms_.first_block(slice)});
  }
  if (placement_.n_nodes == 1) return;
  // A rank that owns nothing may have no partner on other nodes.
  halt_plan_ = comm::make_plan(placement_.has_idle_ranks() ? world : *between_,
                               {.dtype = core::DType::uint64, .op = comm::ReduceOp::max, .n_elements = 1});
  halt_plan_->bind(std::as_bytes(std::span{&halts_here_, 1}), std::as_writable_bytes(std::span{&halts_anywhere_, 1}));
}

// Processors have instructions for CRC32C, which read 28 GB/s or more; sum_hash() reads 2.
HashPiece HostSynchronizer::hash() const {
  return [this](const Piece& piece) { return core::crc32c(std::as_bytes(piece.slice.of(parameters()))); };
}

Arenas HostSynchronizer::arenas() const noexcept {
  return {runtime::on_device(parameters()), runtime::on_device(gradients())};
}

std::span<float> HostSynchronizer::gradients_of(int local_rank) const noexcept {
  return {reinterpret_cast<float*>(gradients_->part(local_rank).data()), sharding_.n_elements()};
}

BucketSumsSetting HostSynchronizer::sums_setting(bool is_tree) const {
  BucketSumsSetting setting{.n_nodes = placement_.n_nodes,
                            .n_buckets = sharding_.buckets().size(),
                            .shares = shares_,
                            .is_tree = is_tree,
                            .rows = &rows_};
  for (int rank = 0; rank < node_->n_ranks(); ++rank) setting.gradients.push_back(gradients_of(rank));
  return setting;
}

std::vector<Piece> HostSynchronizer::all_blocks() const {
  std::vector<Piece> all;
  for (const core::Slice& bucket : sharding_.buckets())
    for (const Piece& block : blocks_in(sharding_.slots(), bucket)) all.push_back(block);
  return all;
}

/// What this rank writes of its node's parameters.
std::vector<Piece> HostSynchronizer::written_pieces() const {
  std::vector<Piece> pieces;
  for (const Share& share : shares_)
    for (const Piece& piece : pieces_in(sharding_.slots(), share.summed)) pieces.push_back(piece);
  return pieces;
}

void HostSynchronizer::start(const StartAt& at) {
  ++n_starts_;
  started_at_ = at;
  n_steps_ = at.n_steps;
  for (Owned& owned : owned_) owned.optimizer.set_n_steps(at.scale ? at.scale->n_updates : at.n_steps);
  const bool is_guarded = guard_.restart(n_steps_);
  await_node();
  if (placement_.n_nodes > 1) copy_between_nodes();
  end_writing(is_guarded);
}

std::span<const float> HostSynchronizer::read(std::size_t slot) {
  if (world_rank_ != 0) return {};
  return sharding_.slots()[slot].slice.of(parameters());
}

void HostSynchronizer::visit(Access access, const std::function<void(const StoredPiece&)>& visitor) {
  for (Owned& owned : owned_) {
    if (access != Access::kept && !owned.is_own) continue;
    for (const Piece& piece : pieces_in(sharding_.slots(), owned.slice)) {
      visitor({piece, "parameter", piece.slice.of(parameters())});
      if (access == Access::own_parameters) continue;
      for (const optim::State& state : owned.optimizer.state())
        visitor({piece, state.name, piece.slice.seen_from(owned.slice.offset).of(state.values)});
    }
  }
}

bool HostSynchronizer::flip_bit(std::size_t slot) {
  for (const Piece& piece : written_pieces()) {
    if (piece.slot != slot) continue;
    parallel::flip_bit(piece.slice.of(parameters()).front());
    return true;
  }
  return false;
}

// The host scales no loss, so it skips no step: all steps made are updates.
std::optional<optim::LossScale> HostSynchronizer::scale_to_save() {
  std::optional<optim::LossScale> now = started_at_.scale;
  if (now) now->n_updates += n_steps_ - started_at_.n_steps;
  return now;
}

// All nodes but the owner add zeros to the bits, not to the values, so every value arrives unchanged, even -0 and NaN.
void HostSynchronizer::copy_between_nodes() {
  for (std::size_t b = 0; b < shares_.size(); ++b) {
    const Share& share = shares_[b];
    if (share.summed.empty()) continue;
    const std::span<float> values = share.summed.of(parameters());
    const core::Slice own = owned_[b].is_own ? share.part() : core::Slice{};
    std::ranges::fill(values.first(own.offset), 0.0F);
    std::ranges::fill(values.subspan(own.end()), 0.0F);
    const auto plan = comm::make_plan(*between_, {.dtype = core::DType::uint32, .n_elements = values.size()});
    plan->bind(std::as_bytes(values), std::as_writable_bytes(values));
    plan->run();
  }
}

// Ranks of one node share its cores and memory, so summing during backward would delay backward. They sum in step(), in
// one pass with the update. Only messages between nodes travel while this rank computes.
void HostSynchronizer::ready(std::size_t slot) {
  if (sums_.overlaps()) sums_.ready(sharding_.n_complete(slot));
}

void HostSynchronizer::ready(std::size_t slot, runtime::Stream& stream) {
  stream.wait();
  ready(slot);
}

bool HostSynchronizer::step(const core::StepNumbers& numbers, double clip_norm, runtime::Stream& stream) {
  stream.wait();
  norm_ = step(numbers, clip_norm);
  return !is_halted_;
}

double HostSynchronizer::step(const core::StepNumbers& numbers, double clip_norm) {
  float scale = 1 / numbers.scale;
  is_halted_ = finish_sums();
  guard_.verify(hash());  // no rank reads the parameters any more, so every change is seen
  double norm = 0;
  if (!is_halted_ && clip_norm > 0) {
    norm = gradient_norm(scale);
    scale *= static_cast<float>(optim::clip_factor(norm, clip_norm));
    is_halted_ = !std::isfinite(norm);  // all ranks know the norm
    if (is_halted_) halt();
  }
  if (!is_halted_) {
    update(numbers.learning_rate, scale);
    ++n_steps_;
  }
  zero_rows();
  sums_.end_step();
  end_writing(!is_halted_ && guard_.count_step(n_steps_));
  rows_.clear(gradients());
  if (guard_.has_changed()) halt();  // only after all ranks of the node have decided about this step
  return norm;
}

// Returns whether any rank halts. Ranks of a node say so with their gradients; the message between nodes travels beside
// the last sums.
bool HostSynchronizer::finish_sums() {
  sums_.begin_rest();
  halts_here_ = halts_anywhere_ = flags_.any_reached(Stage::halt, n_starts_) ? 1 : 0;
  if (halt_plan_) halt_plan_->start({});
  sums_.finish();
  if (halt_plan_) halt_plan_->wait();
  return halts_anywhere_ > 0;
}

double HostSynchronizer::gradient_norm(float scale) {
  for (std::size_t b = 0; b < owned_.size(); ++b)
    norms_.put_gradient(owned_[b].first_block, owned_[b].optimizer.squared_norms(scale, sums_.sources(b)));
  return std::sqrt(norms_.sum_gradient());
}

void HostSynchronizer::update(double lr, float scale) {
  for (std::size_t b = 0; b < owned_.size(); ++b) {
    Owned& owned = owned_[b];
    owned.norms = owned.optimizer.begin_step(scale, sums_.sources(b), owned.slice.of(parameters()));
    norms_.put_tensors(owned.first_block, owned.norms);
  }
  if (needs_norms_) {
    norms_.sum_tensors();
    for (const Owned& owned : owned_) norms_.get_tensors(owned.first_block, owned.norms);
  }
  for (std::size_t b = 0; b < owned_.size(); ++b) {
    owned_[b].optimizer.finish_step(lr, scale, sums_.sources(b), owned_[b].slice.of(parameters()),
                                    touched_in(owned_[b].slice));
    gather_.start(b);
  }
  gather_.finish();
}

/// The places in a slice that may have gradients, from its begin; nothing if they may be anywhere, as with rows of
/// other nodes.
std::span<const core::Slice> HostSynchronizer::touched_in(const core::Slice& slice) {
  touched_.clear();
  if (placement_.n_nodes > 1 || !rows_.has_rows(slice)) return {};
  rows_.find_touched(slice, touched_);
  for (core::Slice& part : touched_) part = part.seen_from(slice.offset);
  return touched_;
}

/// Zeroes sums in rows that the arena's rank did not touch; it zeroes its own rows once no rank reads them.
void HostSynchronizer::zero_rows() {
  for (const Owned& owned : owned_) {
    if (!rows_.has_rows(owned.slice)) continue;
    const bool is_all = placement_.n_nodes > 1 || is_deterministic_;
    for (int rank = 0; rank < node_->n_ranks(); ++rank)
      if (rank == node_->rank() || is_deterministic_) rows_.zero(owned.slice, is_all, gradients_of(rank));
  }
}

/// Returns when all owners of this node have written their slices.
void HostSynchronizer::end_writing(bool is_guarded) {
  if (is_guarded) hashes_.values()[owner()] = guard_.record(hash());
  await_node();
  if (!is_guarded || placement_.n_nodes == 1 || node_->rank() != 0) return;
  const auto of_owners = hashes_.values().first(static_cast<std::size_t>(placement_.n_owners));
  guard_.set_replica_hash(core::crc32c(std::as_bytes(of_owners)));
}

/// Returns when all ranks of the node have arrived here.
void HostSynchronizer::await_node() {
  flags_.publish(Stage::parameters, ++n_meetings_);
  flags_.await_all(Stage::parameters, n_meetings_);
}

}  // namespace lockstep::parallel
