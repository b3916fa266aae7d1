#include "parallel/host_synchronizer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/registry.hpp"
#include "core/crc32c.hpp"
#include "optim/clip.hpp"
#include "runtime/together.hpp"

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
      world_{world},
      placement_{parallel::place(world.nodes(), options.is_deterministic)},
      node_index_{placement_.nodes[static_cast<std::size_t>(world.rank())]},
      sharding_{make_sharding(strategy, slots, options.buckets, placement_)},
      turns_{options.unit_reads, options.prefetch},
      places_{plan_host_places(strategy, sharding_, turns_, placement_, options.is_one_pass)},
      node_{world.split(node_index_, world.rank())},
      between_{world.split(node_->rank(), node_index_)},
      shares_{sharding_.shares_of(owner(), part_of(node_index_, sharding_.n_nodes(), is_deterministic_))},
      own_parameters_{shares_, places_.parameters},
      own_gradients_{shares_, places_.gradients},
      flags_{*node_},
      parameters_{*node_, places_.parameters.n_elements()},
      gradients_{node_->share(places_.gradients.n_elements() * sizeof(float))},
      hashes_{*node_, static_cast<std::size_t>(node_->n_ranks())},
      norms_{*node_, *between_, flags_, sharding_.slots().size(), all_blocks(), shares_, is_deterministic_},
      rows_{*node_, gradient_slots()},
      sums_{*node_, *between_, flags_, sums_setting(options.is_deterministic)},
      gather_{flags_, shares_.size(), [this](std::size_t bucket) { return plan_gather(bucket, false); }},
      unit_gather_{flags_, turns_, places_.parameters,
                   [this](std::size_t bucket) { return plan_gather(bucket, true); }},
      guard_{sharding_.slots(), written_pieces(false), written_pieces(true), world, *between_, options.guard_interval} {
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
  return [this](const Piece& piece) { return core::crc32c(std::as_bytes(parameters_at(piece))); };
}

Arenas HostSynchronizer::arenas() const noexcept {
  Arenas arenas;
  if (has_all_parameters()) arenas.parameters = runtime::on_device(parameters());
  if (places_.gradients.n_pool_elements() == 0) arenas.gradients = runtime::on_device(gradients());
  return arenas;
}

SlotPlace HostSynchronizer::place(std::size_t slot) const {
  const std::size_t bucket = sharding_.bucket_of(slot);
  const core::Slice& slice = sharding_.slots()[slot].slice;
  return {runtime::on_device(places_.parameters.at(bucket, slice).of(parameters())),
          runtime::on_device(places_.gradients.at(bucket, slice).of(gradients())),
          {}};
}

/// What this rank owns of a slice: of all that is always there, or of its part of a unit.
std::span<float> HostSynchronizer::parameters_at(std::size_t bucket, const core::Slice& slice) const noexcept {
  if (is_gathered(bucket)) return slice.seen_from(shares_[bucket].updated.offset).of(own_parameters_.all()[bucket]);
  return places_.parameters.at(bucket, slice).of(parameters());
}

std::span<float> HostSynchronizer::gradients_of(int local_rank) const noexcept {
  return {reinterpret_cast<float*>(gradients_->part(local_rank).data()), places_.gradients.n_elements()};
}

/// The slots where their gradients lie. Those in the pool have no rows.
std::vector<Slot> HostSynchronizer::gradient_slots() const {
  std::vector<Slot> slots{sharding_.slots().begin(), sharding_.slots().end()};
  for (std::size_t i = 0; i < slots.size(); ++i)
    slots[i].slice = places_.gradients.at(sharding_.bucket_of(i), slots[i].slice);
  return slots;
}

/// The all-gather of a bucket between nodes: after updates, or when passes need a unit.
std::unique_ptr<comm::Plan> HostSynchronizer::plan_gather(std::size_t bucket, bool is_gathered_by_passes) {
  if (bucket >= shares_.size() || is_gathered(bucket) != is_gathered_by_passes) return nullptr;
  const Share& share = shares_[bucket];
  if (!share.is_divided() || share.summed.empty()) return nullptr;
  auto plan = comm::make_plan(*between_, {.collective = comm::Collective::all_gather,
                                          .n_elements = share.summed.count,
                                          .is_order_fixed = is_deterministic_,
                                          .cuts = share.cuts});
  plan->bind(std::as_bytes(parameters_at(bucket, share.updated)),
             std::as_writable_bytes(places_.parameters.at(bucket, share.summed).of(parameters())));
  return plan;
}

BucketSumsSetting HostSynchronizer::sums_setting(bool is_tree) const {
  BucketSumsSetting setting{.n_nodes = placement_.n_nodes,
                            .n_buckets = sharding_.buckets().size(),
                            .shares = shares_,
                            .sums = own_gradients_.all(),
                            .is_tree = is_tree,
                            .rows = &rows_};
  for (std::size_t b = 0; b < setting.n_buckets; ++b) setting.are_pooled.push_back(places_.gradients.is_pooled(b));
  for (std::size_t b = 0; b < shares_.size(); ++b) {
    setting.shares[b].summed = places_.gradients.at(b, shares_[b].summed);
    setting.shares[b].updated = places_.gradients.at(b, shares_[b].updated);
  }
  for (int rank = 0; rank < node_->n_ranks(); ++rank) setting.gradients.push_back(gradients_of(rank));
  return setting;
}

std::vector<Piece> HostSynchronizer::all_blocks() const {
  std::vector<Piece> all;
  for (const core::Slice& bucket : sharding_.buckets())
    for (const Piece& block : blocks_in(sharding_.slots(), bucket)) all.push_back(block);
  return all;
}

/// What this rank writes of its node's parameters; or its parts of the units that passes gather.
std::vector<Piece> HostSynchronizer::written_pieces(bool are_gathered) const {
  std::vector<Piece> pieces;
  for (std::size_t b = 0; b < shares_.size(); ++b) {
    if (is_gathered(b) != are_gathered) continue;
    const core::Slice& slice = are_gathered ? shares_[b].updated : shares_[b].summed;
    for (const Piece& piece : pieces_in(sharding_.slots(), slice)) pieces.push_back(piece);
  }
  return pieces;
}

void HostSynchronizer::acquire(std::size_t unit, UnitUse use) {
  unit_gather_.need(unit, use != UnitUse::forward, [this] { sums_.progress(); });
  const auto bucket = places_.gradients.bucket_of(unit);
  if (bucket && use == UnitUse::backward) free_gradients(*bucket);
}

void HostSynchronizer::acquire(std::size_t unit, UnitUse use, runtime::Stream& stream) {
  stream.wait();
  acquire(unit, use);
}

/// Returns when no rank of the node reads what lies where the pass writes the gradients of `bucket`. Sums begin in the
/// order of buckets.
void HostSynchronizer::free_gradients(std::size_t bucket) {
  const BucketPlaces& places = places_.gradients;
  std::size_t n_before = 0;  // buckets up to the last that lies there too
  for (std::size_t b = 0; b < bucket; ++b)
    if (places.is_pooled(b) && places.overlap(b, bucket)) n_before = b + 1;
  sums_.await_sums(n_before, [this] { unit_gather_.progress(); });
  const core::Slice whole = sharding_.buckets()[bucket];
  std::size_t at = whole.offset;
  const auto zero = [&](std::size_t begin, std::size_t end) {
    std::ranges::fill(places.at(bucket, {begin, end - begin}).of(gradients()), 0.0F);
  };
  for (const Piece& piece : pieces_in(sharding_.slots(), whole)) {
    zero(at, sharding_.slots()[piece.slot].has_padding ? piece.slice.end() : piece.slice.offset);
    at = piece.slice.end();
  }
  zero(at, whole.end());
}

void HostSynchronizer::start(const StartAt& at) {
  ++n_starts_;
  started_at_ = at;
  n_steps_ = at.n_steps;
  for (Owned& owned : owned_) owned.optimizer.set_n_steps(at.scale ? at.scale->n_updates : at.n_steps);
  unit_gather_.forget();
  const bool is_guarded = guard_.restart(n_steps_);
  await_node();
  if (placement_.n_nodes > 1) copy_between_nodes();
  end_writing(is_guarded);
}

// No rank but one has other bits than 0 of an element, so all values arrive unchanged.
std::span<const float> HostSynchronizer::read(std::size_t slot) {
  const std::size_t bucket = sharding_.bucket_of(slot);
  const core::Slice& whole = sharding_.slots()[slot].slice;
  if (!is_gathered(bucket)) return world_.rank() == 0 ? parameters_at(bucket, whole) : std::span<float>{};
  constexpr std::size_t at_a_time = std::size_t{1} << 18;
  std::vector<float> part;
  runtime::together(world_.communicator(), [&] {
    part.resize(std::min(at_a_time, whole.count));
    read_.resize(world_.rank() == 0 ? whole.count : 0);
  });
  const auto plan = comm::make_plan(world_, {.dtype = core::DType::uint32, .n_elements = part.size()});
  plan->bind(std::as_bytes(std::span{part}), std::as_writable_bytes(std::span{part}));
  const std::vector<Piece> own = written_pieces(true);
  for (std::size_t at = 0; at < whole.count; at += part.size()) {
    const core::Slice now{whole.offset + at, std::min(part.size(), whole.count - at)};
    std::ranges::fill(part, 0.0F);
    for (const Piece& piece : own)
      if (const Piece common{slot, intersection(piece.slice, now)}; piece.slot == slot && !common.slice.empty())
        std::ranges::copy(parameters_at(common), common.slice.seen_from(now.offset).of(std::span{part}).begin());
    plan->run();
    if (world_.rank() == 0) std::ranges::copy(std::span{part}.first(now.count), std::span{read_}.subspan(at).begin());
  }
  return read_;
}

void HostSynchronizer::visit(Access access, const std::function<void(const StoredPiece&)>& visitor) {
  for (Owned& owned : owned_) {
    if (access != Access::kept && !owned.is_own) continue;
    for (const Piece& piece : pieces_in(sharding_.slots(), owned.slice)) {
      visitor({piece, "parameter", parameters_at(piece)});
      if (access == Access::own_parameters) continue;
      for (const optim::State& state : owned.optimizer.state())
        visitor({piece, state.name, piece.slice.seen_from(owned.slice.offset).of(state.values)});
    }
  }
}

KeptBytes HostSynchronizer::kept() const noexcept {
  KeptBytes kept{.shared = parameters().size_bytes(),
                 .pool = places_.parameters.n_pool_elements() * sizeof(float),
                 .gradients = gradients().size_bytes(),
                 .own = own_parameters_.n_bytes() + own_gradients_.n_bytes()};
  for (const Owned& owned : owned_) kept.states += owned.optimizer.n_state_bytes();
  return kept;
}

bool HostSynchronizer::flip_bit(std::size_t slot) {
  for (const bool is_gathered : {false, true}) {
    for (const Piece& piece : written_pieces(is_gathered)) {
      if (piece.slot != slot) continue;
      parallel::flip_bit(parameters_at(piece).front());
      return true;
    }
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
    if (is_gathered(b) || share.summed.empty()) continue;
    const std::span<float> values = parameters_at(b, share.summed);
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
    unit_gather_.forget();
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
    owned.norms = owned.optimizer.begin_step(scale, sums_.sources(b), parameters_at(b, owned.slice));
    norms_.put_tensors(owned.first_block, owned.norms);
  }
  if (needs_norms_) {
    norms_.sum_tensors();
    for (const Owned& owned : owned_) norms_.get_tensors(owned.first_block, owned.norms);
  }
  for (std::size_t b = 0; b < owned_.size(); ++b) {
    owned_[b].optimizer.finish_step(lr, scale, sums_.sources(b), parameters_at(b, owned_[b].slice), touched_in(b));
    gather_.start(b);
  }
  gather_.finish();
}

/// The places in what this rank updates of a bucket that may have gradients, from its begin; nothing if they may be
/// anywhere, as with rows of other nodes.
std::span<const core::Slice> HostSynchronizer::touched_in(std::size_t bucket) {
  const core::Slice slice = places_.gradients.at(bucket, owned_[bucket].slice);
  touched_.clear();
  if (placement_.n_nodes > 1 || !rows_.has_rows(slice)) return {};
  rows_.find_touched(slice, touched_);
  for (core::Slice& part : touched_) part = part.seen_from(slice.offset);
  return touched_;
}

/// Zeroes sums in rows that the arena's rank did not touch; it zeroes its own rows once no rank reads them.
void HostSynchronizer::zero_rows() {
  for (std::size_t b = 0; b < owned_.size(); ++b) {
    const core::Slice slice = places_.gradients.at(b, owned_[b].slice);
    if (!rows_.has_rows(slice)) continue;
    const bool is_all = placement_.n_nodes > 1 || is_deterministic_;
    for (int rank = 0; rank < node_->n_ranks(); ++rank)
      if (rank == node_->rank() || is_deterministic_) rows_.zero(slice, is_all, gradients_of(rank));
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
