#include "parallel/device_guard.hpp"

#include <utility>

namespace lockstep::parallel {
namespace {

using runtime::DeviceSpan;

/// What this rank alone updates.
std::vector<Piece> own_pieces(const DeviceDivision& division, const DeviceMemory& memory) {
  std::vector<Piece> pieces;
  for (const KeptSlice& kept : memory.updated().first(division.n_divided()))
    for (const Piece& piece : pieces_in(division.sharding().slots(), kept.slice)) pieces.push_back(piece);
  return pieces;
}

/// Where it is in this rank's arrays; nothing of other slots.
std::vector<optim::Segment> own_segments(const DeviceDivision& division, const DeviceMemory& memory) {
  std::vector<optim::Segment> segments(division.sharding().slots().size());
  for (const Piece& piece : own_pieces(division, memory)) segments[piece.slot].slice = memory.place_of(piece.slice);
  return segments;
}

/// Slots in units, or the others, which are in the last slice that a rank updates.
std::vector<optim::Segment> units_only(std::span<const Slot> slots) {
  std::vector<optim::Segment> segments = whole_tensors(slots);
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!slots[i].unit) segments[i] = {};
  return segments;
}
std::vector<optim::Segment> others_only(std::span<const Slot> slots, const core::Slice& last) {
  std::vector<optim::Segment> segments(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!slots[i].unit) segments[i].slice = slots[i].slice.seen_from(last.offset);
  return segments;
}

/// For pieces of which each slot has at most one.
HashPiece hash_of_slot(const std::vector<std::uint64_t>& hashes) {
  return [&hashes](const Piece& piece) { return hashes[piece.slot]; };
}

}  // namespace

DeviceGuard::DeviceGuard(comm::Transport& world, const DeviceDivision& division, const DeviceMemory& memory,
                         std::uint64_t interval)
    : memory_{memory},
      divides_{division.divides()},
      of_all_{division.sharding().slots(),
              pieces_in(division.sharding().slots(), {0, division.sharding().n_elements()}),
              {},
              world,
              world,
              world.n_ranks() > 1 ? interval : 0},
      of_own_{division.sharding().slots(),
              {},
              own_pieces(division, memory),
              world,
              world,
              memory.has_all_parameters() ? 0 : interval} {
  if (world.n_ranks() == 1 || interval == 0) return;
  const std::span<const Slot> slots = division.sharding().slots();
  if (memory.has_all_parameters()) {
    all_ = SlotHashes{whole_tensors(slots)};
    return;
  }
  all_ = SlotHashes::of_16_bits(units_only(slots));
  whole_ = SlotHashes{others_only(slots, memory.updated().back().slice)};
  own_ = SlotHashes{own_segments(division, memory)};
}

bool DeviceGuard::restart(std::uint64_t n_steps) noexcept {
  is_recorded_ = false;
  static_cast<void>(of_own_.restart(n_steps));
  return of_all_.restart(n_steps);
}

bool DeviceGuard::count_step(std::uint64_t n_steps) noexcept {
  static_cast<void>(of_own_.count_step(n_steps));
  return of_all_.count_step(n_steps) && !of_own_.has_changed();
}

std::vector<std::uint64_t> DeviceGuard::hash_all() {
  if (memory_.has_all_parameters()) return all_.of(memory_.parameters_of_passes(), staging_);
  const DeviceSpan<std::byte> weights = memory_.weights();
  const auto* const pairs = reinterpret_cast<const float*>(weights.data());
  std::vector<std::uint64_t> hashes =
      all_.of(DeviceSpan<const float>::at(pairs, weights.size() / sizeof(float)), staging_);
  const std::vector<std::uint64_t> others = whole_.of(memory_.parameters(memory_.updated().back().slice), staging_);
  for (std::size_t slot = 0; slot < hashes.size(); ++slot) hashes[slot] += others[slot];  // one of both is 0
  return hashes;
}

std::vector<std::uint64_t> DeviceGuard::hash_own() { return own_.of(memory_.updated_parameters(), staging_); }

void DeviceGuard::record() {
  const std::vector<std::uint64_t> of_all = hash_all();
  of_all_.set_replica_hash(of_all_.record(hash_of_slot(of_all)));
  if (!memory_.has_all_parameters()) {
    const std::vector<std::uint64_t> of_own = hash_own();
    static_cast<void>(of_own_.record(hash_of_slot(of_own)));
  }
  is_recorded_ = true;
}

void DeviceGuard::verify() {
  is_recorded_ = false;
  const std::vector<std::uint64_t> now = memory_.has_all_parameters() ? hash_all() : hash_own();
  (memory_.has_all_parameters() ? of_all_ : of_own_).verify(hash_of_slot(now));
}

}  // namespace lockstep::parallel
