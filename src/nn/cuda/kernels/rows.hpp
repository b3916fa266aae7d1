// Divides an array of rows of channels among blocks and threads, so that sums over rows of groups have a fixed order. A
// thread sums a column of packs over every n-th row of a part, a block sums its threads, a second kernel the parts.
// Invariant: the division depends only on sizes, never on the device.
// Used by batch and layer normalization and by column sums.
#pragma once

#include <algorithm>

#include "nn/cuda/kernels/math.hpp"

namespace lockstep::nn::cuda {

/// Rows in groups of rows_of_group; the last group may be shorter. At least one row; channels are a multiple of 8.
class GroupedRows {
 public:
  static constexpr int n_threads = 256;
  static constexpr unsigned min_blocks = 4;     ///< at most 64 registers
  static constexpr unsigned spread_blocks = 3;  ///< at most 80

  /// The work of one block.
  struct Part {
    std::size_t group;
    std::size_t index;       ///< of the part in its group
    std::size_t first_pack;  ///< its columns
    std::size_t begin, end;  ///< its rows
  };

  GroupedRows(std::size_t n_rows, std::size_t rows_of_group, std::size_t n_channels)
      : n_rows_{n_rows},
        rows_of_group_{rows_of_group},
        n_packs_{n_channels / pack_channels},
        n_groups_{(n_rows + rows_of_group - 1) / rows_of_group},
        n_tiles_{(n_packs_ + 31) / 32},
        width_{static_cast<int>((n_packs_ + n_tiles_ - 1) / n_tiles_)},
        n_lanes_{n_threads / width_} {
    n_parts_ = std::min(parts_of(1024), std::size_t{512});
  }

  /// The same rows among more blocks, for kernels that keep no results of parts. The number of blocks fills a GPU of
  /// 132 SMs, with `spread_blocks` on each, a whole number of times.
  [[nodiscard]] GroupedRows spread() const {
    GroupedRows rows = *this;
    rows.n_parts_ = parts_of(spread_blocks * 132 * 3);
    return rows;
  }

  LOCKSTEP_HOST_DEVICE std::size_t n_channels() const { return n_packs_ * pack_channels; }
  LOCKSTEP_HOST_DEVICE std::size_t n_packs() const { return n_packs_; }
  LOCKSTEP_HOST_DEVICE std::size_t n_elements() const { return n_rows_ * n_channels(); }
  LOCKSTEP_HOST_DEVICE std::size_t n_groups() const { return n_groups_; }
  /// The number of parts of each group.
  LOCKSTEP_HOST_DEVICE std::size_t n_parts() const { return n_parts_; }
  /// Rows that a block takes at once.
  LOCKSTEP_HOST_DEVICE int n_lanes() const { return n_lanes_; }
  /// The number of rows of `group`.
  LOCKSTEP_HOST_DEVICE std::size_t n_rows_of(std::size_t group) const {
    const std::size_t left = n_rows_ - group * rows_of_group_;
    return left < rows_of_group_ ? left : rows_of_group_;
  }

  [[nodiscard]] Grid grid(std::size_t scratch_bytes) const {
    return {static_cast<unsigned>(n_groups_ * n_parts_ * n_tiles_), n_threads, scratch_bytes};
  }
  LOCKSTEP_HOST_DEVICE Part part(std::size_t block) const {
    const std::size_t n = n_parts_, tile = block % n_tiles_, index = block / n_tiles_ % n;
    const std::size_t group = block / n_tiles_ / n, rows = n_rows_of(group);
    return {group, index, tile * static_cast<std::size_t>(width_), group * rows_of_group_ + rows * index / n,
            group * rows_of_group_ + rows * (index + 1) / n};
  }

  /// f(pack, lane) if the thread has a column in the part; `pack` is its pack of channels.
  template <class F>
  LOCKSTEP_HOST_DEVICE void with_column(const Part& part, int thread, const F& f) const {
    const std::size_t pack = part.first_pack + static_cast<std::size_t>(thread % width_);
    if (thread < width_ * n_lanes_ && pack < n_packs_) f(pack, thread / width_);
  }

  /// use(element, load(element)) for the packs of one column in the part's rows, in order. Loads `n_at_once` before it
  /// uses the first, to keep memory busy.
  template <int n_at_once, class Load, class Use>
  LOCKSTEP_HOST_DEVICE void for_rows(const Part& part, std::size_t pack, int lane, const Load& load,
                                     const Use& use) const {
    const auto stride = static_cast<std::size_t>(n_lanes_);
    std::size_t row = part.begin + static_cast<std::size_t>(lane);
    LOCKSTEP_NO_UNROLL
    for (; row + (n_at_once - 1) * stride < part.end; row += n_at_once * stride) {
      decltype(load(row)) loaded[n_at_once];
      for (int i = 0; i < n_at_once; ++i)
        loaded[i] = load((row + static_cast<std::size_t>(i) * stride) * n_packs_ + pack);
      LOCKSTEP_UNROLL
      for (int i = 0; i < n_at_once; ++i)
        use((row + static_cast<std::size_t>(i) * stride) * n_packs_ + pack, loaded[i]);
    }
    if constexpr (n_at_once > 1) {
      LOCKSTEP_NO_UNROLL
      for (; row < part.end; row += stride) use(row * n_packs_ + pack, load(row * n_packs_ + pack));
    }
  }

  /// f(place, channel) for one channel of the part, if the thread has one. Call it after each lane has stored its
  /// result at scratch place lane * width_ * 8 + place.
  template <class F>
  LOCKSTEP_HOST_DEVICE void with_channel(const Part& part, int thread, const F& f) const {
    const std::size_t channel = part.first_pack * pack_channels + static_cast<std::size_t>(thread);
    if (thread < width_ * pack_channels && channel < n_channels()) f(static_cast<std::size_t>(thread), channel);
  }
  LOCKSTEP_HOST_DEVICE std::size_t place_stride() const { return static_cast<std::size_t>(width_) * pack_channels; }
  /// The index of a part's result for a channel, in an array of all groups.
  LOCKSTEP_HOST_DEVICE std::size_t partial(std::size_t group, std::size_t part, std::size_t channel) const {
    return (group * n_parts_ + part) * n_channels() + channel;
  }
  [[nodiscard]] std::size_t n_partials() const { return n_groups_ * n_parts_ * n_channels(); }

 private:
  /// The number of parts of each group: enough for about `n_blocks` blocks, but several rows for each thread.
  [[nodiscard]] std::size_t parts_of(std::size_t n_blocks) const {
    const std::size_t rows_at_least = 4 * static_cast<std::size_t>(n_lanes_);
    const std::size_t of_group = std::max(n_blocks / (n_groups_ * n_tiles_), std::size_t{1});
    return std::min((rows_of_group_ + rows_at_least - 1) / rows_at_least, of_group);
  }

  std::size_t n_rows_, rows_of_group_, n_packs_, n_groups_;
  std::size_t n_tiles_;  ///< of columns, each for different blocks
  int width_;            ///< adjacent packs per block; the last tile may have fewer
  int n_lanes_;
  std::size_t n_parts_ = 0;
};

/// The second kernel: one block for each pack of channels of each group; each of 32 lanes reads every 32nd part.
struct PartJoin {
  static constexpr int n_threads = 256;
  static constexpr int n_lanes = n_threads / pack_channels;

  /// Joins `Sum`s for all channels of all groups: of_parts(first, step, group, channel) joins parts first, first +
  /// step, ...; of_lanes(sums, step) joins lanes; done(sum, group, channel) receives the result.
  template <class Sum, class Team, class OfParts, class OfLanes, class Done>
  LOCKSTEP_HOST_DEVICE static void run(Team& team, const GroupedRows& rows, const OfParts& of_parts,
                                       const OfLanes& of_lanes, const Done& done) {
    const std::size_t group = team.block() / rows.n_packs(), pack = team.block() % rows.n_packs();
    Sum* const sums = team.template scratch<Sum>(n_threads).data();
    const auto channel_of = [&](int thread) {
      return pack * pack_channels + static_cast<std::size_t>(thread % pack_channels);
    };
    team.each([&](int thread) { sums[thread] = of_parts(thread / pack_channels, group, channel_of(thread)); });
    team.each([&](int thread) {
      if (thread < pack_channels) done(of_lanes(sums + thread), group, channel_of(thread));
    });
  }
  template <class Sum>
  [[nodiscard]] static Grid grid(const GroupedRows& rows) {
    return {static_cast<unsigned>(rows.n_groups() * rows.n_packs()), n_threads, n_threads * sizeof(Sum)};
  }
};

}  // namespace lockstep::nn::cuda
