#include "parallel/replica_guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "comm/registry.hpp"
#include "core/crc32c.hpp"
#include "core/error.hpp"

namespace lockstep::parallel {
namespace {

constexpr std::uint64_t nothing = std::numeric_limits<std::uint64_t>::max();

std::string name_place(const comm::Transport& world, int rank) {
  return fmt::format("rank {} on node {}", rank, world.nodes()[static_cast<std::size_t>(rank)]);
}

[[noreturn]] void fail(std::string what, std::string where, std::string expected) {
  throw core::Error(core::ExitCode::failed, {.what = std::move(what),
                                             .where = std::move(where),
                                             .expected = std::move(expected),
                                             .fix = "resume from the last checkpoint on another node; check this "
                                                    "node's memory and processor, and look for a stray write"});
}

/// Returns the most frequent of `values`; the first of equally frequent ones.
std::uint64_t most_frequent(std::span<const std::uint64_t> values) {
  const auto frequency = [&](std::uint64_t value) { return std::count(values.begin(), values.end(), value); };
  return *std::max_element(values.begin(), values.end(),
                           [&](std::uint64_t a, std::uint64_t b) { return frequency(a) < frequency(b); });
}

}  // namespace

ReplicaGuard::ReplicaGuard(std::span<const Slot> slots, std::vector<Piece> replicated, std::span<const Piece> unique,
                           comm::Transport& world, comm::Transport& between, std::uint64_t interval)
    : pieces_{std::move(replicated)},
      n_replicated_{pieces_.size()},
      world_{world},
      between_{between},
      interval_{interval} {
  pieces_.insert(pieces_.end(), unique.begin(), unique.end());
  hashes_.resize(pieces_.size());
  for (const Slot& slot : slots) names_.push_back(slot.name);
}

bool ReplicaGuard::restart(std::uint64_t n_steps) noexcept {
  n_steps_ = started_at_ = record_at_ = record_before_at_ = n_steps;
  changed_.reset();
  return interval_ > 0;
}

bool ReplicaGuard::count_step(std::uint64_t n_steps) noexcept {
  n_steps_ = n_steps;
  return interval_ > 0 && !changed_ && n_steps_ % interval_ == 0;
}

std::uint32_t ReplicaGuard::record(const HashPiece& hash) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) hashes_[i] = hash(pieces_[i]);
  is_recorded_ = true;
  record_before_at_ = std::exchange(record_at_, n_steps_);
  return core::crc32c(std::as_bytes(hashes_of_replicas()));
}

// Nodes compare records, which finds a change on one of them since the record before the last. On one node a record is
// compared once, in the next step, so values read after the record may have changed.
std::uint64_t ReplicaGuard::n_sound_steps() const noexcept {
  if (interval_ == 0) return n_steps_;
  if (between_.n_ranks() > 1) return record_before_at_;
  if (!is_recorded_ && !changed_) return n_steps_;
  return record_at_ > started_at_ ? record_at_ - 1 : started_at_;
}

void ReplicaGuard::verify(const HashPiece& hash) {
  if (!std::exchange(is_recorded_, false)) return;
  for (std::size_t i = 0; i < pieces_.size() && !changed_; ++i) {
    found_ = hash(pieces_[i]);
    if (found_ != hashes_[i]) changed_ = i;
  }
}

void ReplicaGuard::fail_for_change() const {
  if (!changed_) return;
  fail(fmt::format("parameters of '{}' changed in memory between two steps", names_[pieces_[*changed_].slot]),
       name_place(world_, world_.rank()),
       fmt::format("hash {:08x} as written, but found {:08x}", hashes_[*changed_], found_));
}

void ReplicaGuard::fail_for_replicas() const {
  std::uint64_t mine = find_stray();
  std::uint64_t first = nothing;
  const auto plan = comm::make_plan(world_, {.dtype = core::DType::uint64, .op = comm::ReduceOp::min, .n_elements = 1});
  plan->bind(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{&first, 1}));
  plan->run();
  core::require(first != nothing, "replicas with different sums differ in some tensor");
  fail(fmt::format("parameters of '{}' differ between nodes", names_[first >> 32]),
       name_place(world_, static_cast<int>(first & 0xffff'ffff)), "the same bits on all nodes");
}

/// Returns slot (high bits) and rank of this rank's first piece that differs between one node and most nodes.
std::uint64_t ReplicaGuard::find_stray() const {
  const auto n_nodes = static_cast<std::size_t>(between_.n_ranks());
  const auto gather = [&](core::DType dtype, const auto& mine, auto& all) {
    const auto plan = comm::make_plan(
        between_, {.collective = comm::Collective::all_gather, .dtype = dtype, .n_elements = all.size()});
    plan->bind(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{all}));
    plan->run();
  };
  const std::span<const std::uint64_t> hashes = hashes_of_replicas();
  std::vector<std::uint64_t> all(hashes.size() * n_nodes);
  std::vector<std::int32_t> rank{world_.rank()};
  std::vector<std::int32_t> ranks(n_nodes);
  gather(core::DType::uint64, hashes, all);
  gather(core::DType::int32, rank, ranks);
  std::vector<std::uint64_t> of_nodes(n_nodes);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    for (std::size_t node = 0; node < n_nodes; ++node) of_nodes[node] = all[node * hashes.size() + i];
    const std::uint64_t usual = most_frequent(of_nodes);
    const auto stray =
        std::find_if(of_nodes.begin(), of_nodes.end(), [&](std::uint64_t hash) { return hash != usual; });
    if (stray == of_nodes.end()) continue;
    const auto owner = static_cast<std::uint32_t>(ranks[static_cast<std::size_t>(stray - of_nodes.begin())]);
    return std::uint64_t{pieces_[i].slot} << 32 | owner;
  }
  return nothing;
}

}  // namespace lockstep::parallel
