// Cross-entropy of softmax with its gradient. A warp reads a row once, if the row fits into its registers. A block
// reads a longer row twice: for the maximum and the sum at once, then for the gradient.
// Invariant: as loss.hpp. All but the logarithm of a row's sum has the same bits on a GPU and on the host.
// Used by nn/cuda.
#pragma once

#include <cmath>

#include "nn/cuda/kernels/loss.hpp"

namespace lockstep::nn::cuda {

/// The loss of the softmax of outputs. Those beyond n_outputs are 0.
template <class T>
struct SoftmaxCrossEntropy {
  static constexpr int max_threads = LossRows<T>::most_threads;
  static constexpr unsigned min_blocks = 2;
  LossRows<T> rows;
  const std::int64_t* labels;
  double label_smoothing;

  LOCKSTEP_HOST_DEVICE std::size_t n_packs() const { return rows.row_elements / pack_channels; }
  LOCKSTEP_HOST_DEVICE bool has_warp_for_row() const { return n_packs() <= packs_of_warp; }
  [[nodiscard]] Grid grid() const {
    if (has_warp_for_row())
      return {static_cast<unsigned>((rows.n_rows + rows_of_block - 1) / rows_of_block), rows_of_block * warp_size,
              rows_of_block * sizeof(RowEnd)};
    const std::size_t warps = (n_packs() + packs_of_warp - 1) / packs_of_warp;
    return {static_cast<unsigned>(rows.n_rows),
            warp_size * static_cast<int>(std::min<std::size_t>(warps, max_threads / warp_size)), 0};
  }
  void touches(const auto& tell) const {
    rows.touches(tell, has_warp_for_row() ? "softmax_cross_entropy" : "softmax_of_long_rows", labels, rows.n_rows);
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    if (has_warp_for_row())
      rows_of_warps(team);
    else
      row_of_block(team);
  }

 private:
  static constexpr int warp_size = runtime::kernel::warp_size;
  static constexpr int rows_of_block = 8;
  static constexpr int packs_of_thread = 4;
  static constexpr std::size_t packs_of_warp = packs_of_thread * warp_size;
  /// Where a maximum begins: the difference of -infinity from it is not NaN.
  static constexpr float lowest = -std::numeric_limits<float>::max();

  /// Numbers of a pack; -infinity beyond n_outputs.
  struct Values {
    float x[pack_channels];
  };
  struct Kept {
    Values packs[packs_of_thread];
  };
  /// What a loss depends on.
  struct RowEnd {
    double sum;    ///< of e^(x - max)
    double total;  ///< of x
    float max;
    float output;  ///< for the label
    unsigned n_before;
  };
  /// The gradient of an output is e^(x - max) * factor + addend; that for the label is less by `target`.
  struct Line {
    float factor;
    float addend;
    float target;
  };

  /// Adds the pack to `total`, and to `n_before` how many of it rank before the label.
  LOCKSTEP_HOST_DEVICE Values values_of(const Channels<T>& channels, std::size_t pack, const LabelOutput& of_label,
                                        float& total, unsigned& n_before) const {
    Values values;
    const std::size_t first = pack * pack_channels;
    LOCKSTEP_UNROLL
    for (int k = 0; k < pack_channels; ++k) values.x[k] = channels[k];
    LOCKSTEP_UNROLL
    for (int k = 0; k < pack_channels; ++k) total += values.x[k];
    if (first + pack_channels > rows.n_outputs) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < pack_channels; ++k)
        if (first + static_cast<std::size_t>(k) >= rows.n_outputs)
          values.x[k] = -std::numeric_limits<float>::infinity();
    }
    // The comparison is the same for all of a pack that does not hold the label.
    if (first + pack_channels <= of_label.label) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < pack_channels; ++k) n_before += values.x[k] < of_label.output ? 0 : 1;
    } else if (first > of_label.label) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < pack_channels; ++k) n_before += values.x[k] <= of_label.output ? 0 : 1;
    } else {
      LOCKSTEP_UNROLL
      for (int k = 0; k < pack_channels; ++k)
        n_before += of_label.is_after(values.x[k], first + static_cast<std::size_t>(k)) ? 1 : 0;
    }
    return values;
  }

  /// Ignores NaN, which the sum shows.
  struct Larger {
    LOCKSTEP_HOST_DEVICE float operator()(float a, float b) const { return __builtin_fmaxf(a, b); }
  };
  struct Add {
    template <class Number>
    LOCKSTEP_HOST_DEVICE Number operator()(Number a, Number b) const {
      return a + b;
    }
  };
  LOCKSTEP_HOST_DEVICE static float max_of(const Values& values, float max) {
    LOCKSTEP_UNROLL
    for (int k = 0; k < pack_channels; ++k) max = Larger{}(max, values.x[k]);
    return max;
  }
  /// Replaces numbers by e^(x - max); returns their sum.
  LOCKSTEP_HOST_DEVICE static float take_exponentials(Values& values, float max) {
    float sum = 0;
    LOCKSTEP_UNROLL
    for (int k = 0; k < pack_channels; ++k) {
      values.x[k] = exponential(values.x[k] - max);
      sum += values.x[k];
    }
    return sum;
  }

  LOCKSTEP_HOST_DEVICE SampleLoss loss_of(const RowEnd& row, std::size_t label) const {
    const auto n = static_cast<double>(rows.n_outputs);
    const double log_sum = static_cast<double>(row.max) + std::log(row.sum);
    return LabelOutput{label, row.output}.sample((1 - label_smoothing) * (log_sum - static_cast<double>(row.output)) +
                                                     label_smoothing / n * (n * log_sum - row.total),
                                                 row.n_before);
  }
  LOCKSTEP_HOST_DEVICE Line line_of(double sum) const {
    const float factor = rows.factor(), smoothing = static_cast<float>(label_smoothing);
    return {factor / static_cast<float>(sum), -smoothing / static_cast<float>(rows.n_outputs) * factor,
            (1 - smoothing) * factor};
  }
  LOCKSTEP_HOST_DEVICE void write_gradient(std::size_t row, std::size_t pack, const Values& exponentials,
                                           const Line& line, std::size_t label) const {
    float values[pack_channels];
    const std::size_t first = pack * pack_channels;
    LOCKSTEP_UNROLL
    for (int k = 0; k < pack_channels; ++k) values[k] = fused(exponentials.x[k], line.factor, line.addend);
    if (first <= label && label < first + pack_channels) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < pack_channels; ++k)
        if (first + static_cast<std::size_t>(k) == label) values[k] -= line.target;
    }
    if (first + pack_channels > rows.n_outputs) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < pack_channels; ++k)
        if (first + static_cast<std::size_t>(k) >= rows.n_outputs) values[k] = 0;
    }
    Channels<T> out;
    LOCKSTEP_UNROLL
    for (int k = 0; k < pack_channels; ++k) out.set(k, values[k]);
    store_channels(rows.gradient + row * rows.row_elements, pack, out);
  }

  /// Calls f(p, pack) for packs p = 0, 1, ... of a thread, in a row of its warp.
  template <class F>
  LOCKSTEP_HOST_DEVICE void for_own_packs(int thread, const F& f) const {
    LOCKSTEP_UNROLL
    for (int p = 0; p < packs_of_thread; ++p) {
      const int pack = thread % warp_size + p * warp_size;
      if (pack < static_cast<int>(n_packs())) f(p, static_cast<std::size_t>(pack));
    }
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void rows_of_warps(Team& team) const {
    const auto row_of = [&](int thread) {
      return static_cast<std::size_t>(team.block()) * rows_of_block + static_cast<std::size_t>(thread / warp_size);
    };
    auto ends = team.template scratch<RowEnd>(rows_of_block);
    auto kept = team.template per_thread<Kept>({});
    auto largest = team.template per_thread<float>(lowest);
    auto totals = team.template per_thread<double>(0), sums = team.template per_thread<double>(0);
    auto before = team.template per_thread<unsigned>(0);
    auto outputs = team.template per_thread<float>(0);
    team.each([&](int thread) {
      const std::size_t row = row_of(thread);
      if (row >= rows.n_rows) return;
      const T* const begin = rows.outputs + row * rows.row_elements;
      Channels<T> channels[packs_of_thread];  // loads all before it uses the first
      for_own_packs(thread, [&](int p, std::size_t pack) { channels[p] = load_channels(begin, pack); });
      const std::size_t label = rows.is_class(labels[row]) ? static_cast<std::size_t>(labels[row]) : 0;
      const LabelOutput of_label{label, to_float(begin[label])};
      outputs[thread] = of_label.output;
      float total = 0;
      for_own_packs(thread, [&](int p, std::size_t pack) {
        kept[thread].packs[p] = values_of(channels[p], pack, of_label, total, before[thread]);
        largest[thread] = max_of(kept[thread].packs[p], largest[thread]);
      });
      totals[thread] = static_cast<double>(total);
    });
    const auto max = team.reduce_warps(largest, Larger{});
    const auto total = team.reduce_warps(totals, Add{});
    const auto n_before = team.reduce_warps(before, Add{});
    team.each([&](int thread) {
      if (row_of(thread) >= rows.n_rows) return;
      if (thread % warp_size == 0)
        ends[static_cast<std::size_t>(thread / warp_size)] = {0, total[thread], max[thread], outputs[thread],
                                                              n_before[thread]};
      for_own_packs(thread, [&](int p, std::size_t) {
        sums[thread] += static_cast<double>(take_exponentials(kept[thread].packs[p], max[thread]));
      });
    });
    const auto sum = team.reduce_warps(sums, Add{});
    team.each([&](int thread) {
      const std::size_t row = row_of(thread);
      if (row >= rows.n_rows) return;
      if (thread % warp_size == 0) ends[static_cast<std::size_t>(thread / warp_size)].sum = sum[thread];
      if (rows.gradient == nullptr) return;
      const std::int64_t label = labels[row];
      const Line line = line_of(sum[thread]);
      for_own_packs(thread, [&](int p, std::size_t pack) {
        if (rows.is_class(label))
          write_gradient(row, pack, kept[thread].packs[p], line, static_cast<std::size_t>(label));
        else
          store_channels(rows.gradient + row * rows.row_elements, pack, Channels<T>{});
      });
    });
    // One warp takes the logarithms of all rows.
    team.each([&](int thread) {
      const std::size_t row = static_cast<std::size_t>(team.block()) * rows_of_block + static_cast<std::size_t>(thread);
      if (thread >= rows_of_block || row >= rows.n_rows) return;
      if (rows.is_class(labels[row])) {
        rows.losses[row] = loss_of(ends[static_cast<std::size_t>(thread)], static_cast<std::size_t>(labels[row]));
      } else {
        *rows.has_bad_label = 1;
        rows.losses[row] = {0, 0, 0};
      }
    });
  }

  /// Calls f(channels, pack) for the packs of a thread, in the row of its block. Loads the next pack before each call.
  template <class Team, class F>
  LOCKSTEP_HOST_DEVICE void for_packs_of_block(const Team& team, int thread, const F& f) const {
    const auto stride = static_cast<std::size_t>(team.n_threads());
    auto pack = static_cast<std::size_t>(thread);
    Channels<T> next = pack < n_packs() ? load_channels(rows.row(team), pack) : Channels<T>{};
    LOCKSTEP_NO_UNROLL
    for (; pack < n_packs(); pack += stride) {
      const Channels<T> channels = next;
      if (pack + stride < n_packs()) next = load_channels(rows.row(team), pack + stride);
      f(channels, pack);
    }
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void row_of_block(Team& team) const {
    const std::size_t row = team.block();
    if (!rows.is_class(labels[row])) return rows.refuse_label(team);
    const auto label = static_cast<std::size_t>(labels[row]);
    const LabelOutput of_label{label, to_float(rows.row(team)[label])};
    auto largest = team.template per_thread<float>(lowest);
    auto sums = team.template per_thread<double>(0), totals = team.template per_thread<double>(0);
    auto before = team.template per_thread<unsigned>(0);
    team.each([&](int thread) {
      for_packs_of_block(team, thread, [&](const Channels<T>& channels, std::size_t pack) {
        float total = 0;
        Values values = values_of(channels, pack, of_label, total, before[thread]);
        const float max = max_of(values, largest[thread]);
        if (max > largest[thread]) {  // the sum so far is relative to a smaller one
          sums[thread] *= static_cast<double>(exponential(largest[thread] - max));
          largest[thread] = max;
        }
        sums[thread] += static_cast<double>(take_exponentials(values, max));
        totals[thread] += static_cast<double>(total);
      });
    });
    const float max = team.reduce(largest, Larger{});
    team.each([&](int thread) { sums[thread] *= static_cast<double>(exponential(largest[thread] - max)); });
    const RowEnd end{team.sum(sums), team.sum(totals), max, of_label.output, team.sum(before)};
    team.each([&](int thread) {
      if (thread == 0) rows.losses[row] = loss_of(end, label);
      if (rows.gradient == nullptr) return;
      const Line line = line_of(end.sum);
      for_packs_of_block(team, thread, [&](const Channels<T>& channels, std::size_t pack) {
        float total = 0;
        unsigned n_before = 0;
        Values values = values_of(channels, pack, of_label, total, n_before);
        take_exponentials(values, max);
        write_gradient(row, pack, values, line, label);
      });
    });
  }
};

}  // namespace lockstep::nn::cuda
