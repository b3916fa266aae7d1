#include <algorithm>
#include <type_traits>

#include "core/sum_hash.hpp"
#include "optim/cuda/arena.hpp"
#include "optim/cuda/octets.hpp"

namespace lockstep::optim::cuda {
namespace {

template <class To>
struct Cast {
  const float* from;
  To* to;

  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto values = kernel::load_once<float, octet>(from, i);
    kernel::Pack<To, octet> rounded;
    for (int j = 0; j < octet; ++j) rounded[j] = kernel::round_to<To>(values[j]);
    kernel::store(to, i, rounded);
  }
};

template <class T>
struct SquaredNorms {
  static constexpr int max_threads = 256;
  const BlockPiece* pieces;
  std::uint32_t n_pieces;
  const T* values;
  double* partials;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    for (std::uint32_t i = team.block(); i < n_pieces; i += team.n_blocks()) {
      const BlockPiece piece = pieces[i];
      auto squares = team.per_thread(0.0);
      team.each([&](int thread) {
        each_octet(team, thread, piece, [&](std::size_t at) {
          const auto x = kernel::load<T, octet>(values, at);
          for (int j = 0; j < octet; ++j) {
            const double value = kernel::to_float(x[j]);
            squares[thread] += value * value;
          }
        });
      });
      const double total = team.sum(squares);
      team.each([&](int thread) {
        if (thread == 0) partials[i] = total;
      });
    }
  }
};

struct HashPieces {
  static constexpr int max_threads = 256;
  const BlockPiece* pieces;
  std::uint32_t n_pieces;
  const float* values;
  std::uint64_t* partials;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    for (std::uint32_t i = team.block(); i < n_pieces; i += team.n_blocks()) {
      const BlockPiece piece = pieces[i];
      auto hashes = team.per_thread(std::uint64_t{0});
      team.each([&](int thread) {
        each_octet(team, thread, piece, [&](std::size_t at) {
          const auto x = kernel::load_once<float, octet>(values, at);
          std::uint64_t element = at * octet;
          for (int j = 0; j < octet; ++j) hashes[thread] += core::sum_hash(element++, x[j]);
        });
      });
      const std::uint64_t total = team.sum(hashes);
      team.each([&](int thread) {
        if (thread == 0) partials[i] = total;
      });
    }
  }
};

/// One block per range.
template <class T>
struct AddUp {
  static constexpr int max_threads = 256;
  const T* partials;
  const PieceRange* ranges;
  T* totals;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const PieceRange range = ranges[team.block()];
    auto sums = team.per_thread(T{0});
    team.each([&](int thread) {
      for (auto i = static_cast<std::uint32_t>(thread); i < range.n_pieces;
           i += static_cast<std::uint32_t>(team.n_threads()))
        sums[thread] += partials[range.first_piece + i];
    });
    const T total = team.sum(sums);
    team.each([&](int thread) {
      if (thread == 0) totals[team.block()] = total;
    });
  }
};

template <class T>
void add_up_as(Stream& stream, DeviceSpan<const T> partials, DeviceSpan<const PieceRange> ranges,
               DeviceSpan<T> totals) {
  core::require(totals.size() == ranges.size(), "there is a number for every range");
  if (ranges.size() == 0) return;
  kernel::enqueue(stream, "add_up", {.n_blocks = static_cast<unsigned>(ranges.size())},
                  {region_of(partials), region_of(ranges)}, {region_of(totals)},
                  AddUp<T>{partials.data(), ranges.data(), totals.data()});
}

}  // namespace

Cut cut(std::span<const Segment> segments) {
  Cut result;
  for (const Segment& segment : segments) {
    const auto& [offset, count] = segment.slice;
    core::require(offset % range_multiple == 0 && count % range_multiple == 0,
                  "updated ranges begin and end at multiples of 16 elements");
    core::require(offset + count <= most_elements, "an arena has at most most_elements elements");
    const auto range = static_cast<std::uint32_t>(result.ranges.size());
    const auto first_piece = static_cast<std::uint32_t>(result.pieces.size());
    for (std::size_t done = 0; done < count; done += piece_elements)
      result.pieces.push_back({.offset = offset + done,
                               .n = static_cast<std::uint32_t>(std::min(count - done, piece_elements)),
                               .range = range});
    result.ranges.push_back({.first_piece = first_piece,
                             .n_pieces = static_cast<std::uint32_t>(result.pieces.size()) - first_piece,
                             .decays = segment.decays});
  }
  return result;
}

void cast(Stream& stream, DeviceSpan<const float> from, const Copy& to) {
  std::visit(
      [&]<class Wanted>(const Wanted& copy) {
        if constexpr (!std::is_same_v<Wanted, std::monostate>) {
          using To = std::remove_pointer_t<decltype(copy.data())>;
          core::require(from.size() == copy.size() && from.size() % range_multiple == 0,
                        "both arenas of a cast have the same size, a multiple of 16 elements");
          kernel::for_each(stream, "cast", from.size() / octet, {region_of(from)}, {region_of(copy)},
                           Cast<To>{from.data(), copy.data()});
        }
      },
      to);
}

void squared_norms(Stream& stream, const Gradient& values, DeviceSpan<const BlockPiece> pieces,
                   DeviceSpan<double> partials) {
  core::require(partials.size() == pieces.size(), "there is a number for every piece");
  std::visit(
      [&]<class T>(const DeviceSpan<const T>& of) {
        kernel::enqueue(
            stream, "squared_norms", grid_of_pieces(pieces.size()), {region_of(pieces), region_of(of)},
            {region_of(partials)},
            SquaredNorms<T>{pieces.data(), static_cast<std::uint32_t>(pieces.size()), of.data(), partials.data()});
      },
      values);
}

void add_up(Stream& stream, DeviceSpan<const double> partials, DeviceSpan<const PieceRange> ranges,
            DeviceSpan<double> totals) {
  add_up_as(stream, partials, ranges, totals);
}

void hash_pieces(Stream& stream, DeviceSpan<const float> values, DeviceSpan<const BlockPiece> pieces,
                 DeviceSpan<std::uint64_t> partials) {
  core::require(partials.size() == pieces.size(), "there is a number for every piece");
  kernel::enqueue(stream, "hash_pieces", grid_of_pieces(pieces.size()), {region_of(pieces), region_of(values)},
                  {region_of(partials)},
                  HashPieces{pieces.data(), static_cast<std::uint32_t>(pieces.size()), values.data(), partials.data()});
}

void add_up(Stream& stream, DeviceSpan<const std::uint64_t> partials, DeviceSpan<const PieceRange> ranges,
            DeviceSpan<std::uint64_t> totals) {
  add_up_as(stream, partials, ranges, totals);
}

}  // namespace lockstep::optim::cuda
