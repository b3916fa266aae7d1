#include "parallel/slot_hashes.hpp"

namespace lockstep::parallel {
namespace {

using runtime::Buffer;
using runtime::DeviceSpan;

template <class T>
Buffer array_on_device(std::size_t n) {
  return Buffer{core::Bytes{n * sizeof(T)}, runtime::Memory::device};
}

template <class T>
Buffer send_to_device(const std::vector<T>& values) {
  Buffer there = array_on_device<T>(values.size());
  runtime::Staging{}.send(std::as_bytes(std::span{values}), there.on_device<std::byte>());
  return there;
}

}  // namespace

SlotHashes::SlotHashes(const optim::cuda::Cut& cut)
    : pieces_{send_to_device(cut.pieces)},
      ranges_{send_to_device(cut.ranges)},
      by_piece_{array_on_device<std::uint64_t>(cut.pieces.size())},
      by_slot_{array_on_device<std::uint64_t>(cut.ranges.size())} {}

SlotHashes::SlotHashes(std::span<const optim::Segment> slots) : SlotHashes{optim::cuda::cut(slots)} {}

// Places and sizes are multiples of 16, so halves are multiples of what a kernel reads at once.
SlotHashes SlotHashes::of_16_bits(std::span<const optim::Segment> slots) {
  optim::cuda::Cut cut = optim::cuda::cut(slots);
  for (optim::cuda::BlockPiece& piece : cut.pieces) {
    piece.offset /= 2;
    piece.n /= 2;
  }
  return SlotHashes{cut};
}

std::vector<std::uint64_t> SlotHashes::of(DeviceSpan<const float> values, runtime::Staging& staging) const {
  const auto pieces = pieces_.on_device<optim::cuda::BlockPiece>();
  const auto by_piece = by_piece_.on_device<std::uint64_t>();
  const auto by_slot = by_slot_.on_device<std::uint64_t>();
  runtime::Stream stream;
  if (pieces.size() > 0) optim::cuda::hash_pieces(stream, values, pieces, by_piece);
  optim::cuda::add_up(stream, DeviceSpan<const std::uint64_t>{by_piece}, ranges_.on_device<optim::cuda::PieceRange>(),
                      by_slot);
  stream.wait();
  std::vector<std::uint64_t> hashes(by_slot.size());
  staging.fetch(runtime::as_bytes(by_slot), std::as_writable_bytes(std::span{hashes}));
  return hashes;
}

}  // namespace lockstep::parallel
