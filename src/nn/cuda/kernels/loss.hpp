// The loss and its gradient, by rows of a network's outputs; then the sum over rows.
// Invariant: losses are those of nn/host/loss; sums over a row and over rows have fixed orders.
// Used by nn/cuda.
#pragma once

#include <algorithm>

#include "core/step_numbers.hpp"
#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::nn::cuda {

struct SampleLoss {
  double loss;
  std::uint32_t is_top1;
  std::uint32_t is_top5;
};

/// As LossSums, in a device's memory.
struct LossTotals {
  double loss;
  std::uint64_t n;
  std::uint64_t n_top1;
  std::uint64_t n_top5;
};

/// Rows of outputs, and their results. The first n_outputs of row_elements, a multiple of 8, are used; the gradients of
/// the others are 0.
template <class T>
struct LossRows {
  std::size_t n_rows;
  std::size_t n_outputs;
  std::size_t row_elements;
  const T* outputs;
  T* gradient;                       ///< null: not wanted; may be `outputs`
  const core::StepNumbers* numbers;  ///< the gradient is of scale * sample_weight * loss_scale * share times the loss
  const float* loss_scale;           ///< null: 1
  SampleLoss* losses;
  std::uint32_t* has_bad_label;  ///< set to 1 if a label is not a class; the row then has loss 0 and gradient 0
  float share = 1;               ///< of a row in its sample's loss, for the gradient

  static constexpr int most_threads = 512;

  LOCKSTEP_HOST_DEVICE std::size_t n_packs() const { return row_elements / Pack<T>::size; }
  LOCKSTEP_HOST_DEVICE float factor() const {
    return numbers->scale * numbers->sample_weight * (loss_scale == nullptr ? 1 : *loss_scale) * share;
  }
  /// A block for each row.
  [[nodiscard]] Grid grid() const {
    const std::size_t warps = (n_packs() + 31) / 32;
    return {static_cast<unsigned>(n_rows), 32 * static_cast<int>(std::min<std::size_t>(warps, most_threads / 32))};
  }

  /// For a kernel that also reads targets.
  template <class Target>
  void touches(const auto& tell, const char* name, const Target* targets, std::size_t n_targets) const {
    const std::size_t n = n_rows * row_elements;
    tell(name,
         {region(outputs, n), region(targets, n_targets), region(numbers, numbers == nullptr ? 0 : 1),
          region(loss_scale, loss_scale == nullptr ? 0 : 1)},
         {region(gradient, gradient == nullptr ? 0 : n), region(losses, n_rows),
          region(has_bad_label, has_bad_label == nullptr ? 0 : 1)});
  }

  /// The row of this block.
  template <class Team>
  LOCKSTEP_HOST_DEVICE const T* row(const Team& team) const {
    return outputs + team.block() * row_elements;
  }
  /// f(pack, index) for the packs of a row that belong to one thread; the row may be in any memory.
  template <class Team, class F>
  LOCKSTEP_HOST_DEVICE void for_packs(const Team& team, int thread, const T* row, const F& f) const {
    const auto stride = static_cast<std::size_t>(team.n_threads());
    for (auto i = static_cast<std::size_t>(thread); i < n_packs(); i += stride) f(runtime::kernel::load(row, i), i);
  }
  template <class Team, class F>
  LOCKSTEP_HOST_DEVICE void write_gradient(const Team& team, std::size_t pack, const F& gradient_of) const {
    Pack<T> out;
    for (int k = 0; k < Pack<T>::size; ++k) {
      const std::size_t c = pack * Pack<T>::size + static_cast<std::size_t>(k);
      out[k] = round_to<T>(c < n_outputs ? gradient_of(c, k) : 0);
    }
    runtime::kernel::store(gradient + team.block() * row_elements, pack, out);
  }

  LOCKSTEP_HOST_DEVICE bool is_class(std::int64_t label) const {
    return label >= 0 && static_cast<std::uint64_t>(label) < n_outputs;
  }
  /// The result of a row whose label is not a class.
  template <class Team>
  LOCKSTEP_HOST_DEVICE void refuse_label(Team& team) const {
    team.each([&](int thread) {
      if (thread == 0) {
        *has_bad_label = 1;
        losses[team.block()] = {0, 0, 0};
      }
      if (gradient == nullptr) return;
      for_packs(team, thread, row(team),
                [&](const Pack<T>&, std::size_t i) { write_gradient(team, i, [](std::size_t, int) { return 0.0F; }); });
    });
  }
};

/// The class of a row, and the network's output for it.
struct LabelOutput {
  std::size_t label;
  float output;

  /// Whether `other` ranks before the label's output. The first of equal outputs ranks first; NaN ranks before all.
  LOCKSTEP_HOST_DEVICE bool is_after(float other, std::size_t c) const {
    return c != label && !(other < output || (other == output && c > label));
  }
  LOCKSTEP_HOST_DEVICE SampleLoss sample(double loss, unsigned n_before) const {
    const float magnitude = output < 0 ? -output : output;
    const bool is_number = magnitude <= std::numeric_limits<float>::max();
    return {loss, is_number && n_before == 0 ? 1U : 0U, is_number && n_before < 5 ? 1U : 0U};
  }
};

/// The loss of outputs that are logarithms of probabilities.
template <class T>
struct NegativeLog {
  static constexpr int max_threads = LossRows<T>::most_threads;
  LossRows<T> rows;
  const std::int64_t* labels;

  [[nodiscard]] Grid grid() const { return rows.grid(); }
  void touches(const auto& tell) const { rows.touches(tell, "negative_log", labels, rows.n_rows); }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const std::size_t row = team.block();
    if (!rows.is_class(labels[row])) return rows.refuse_label(team);
    const auto label = static_cast<std::size_t>(labels[row]);
    const LabelOutput of_label{label, to_float(rows.row(team)[label])};
    auto before = team.template per_thread<unsigned>(0);
    team.each([&](int thread) {
      rows.for_packs(team, thread, rows.row(team), [&](const Pack<T>& pack, std::size_t i) {
        for (int k = 0; k < Pack<T>::size; ++k) {
          const std::size_t c = i * Pack<T>::size + static_cast<std::size_t>(k);
          before[thread] += c < rows.n_outputs && of_label.is_after(to_float(pack[k]), c) ? 1 : 0;
        }
      });
    });
    const unsigned n_before = team.sum(before);
    team.each([&](int thread) {
      if (thread == 0) rows.losses[row] = of_label.sample(-static_cast<double>(of_label.output), n_before);
      if (rows.gradient == nullptr) return;
      const float factor = rows.factor();
      rows.for_packs(team, thread, rows.row(team), [&](const Pack<T>&, std::size_t i) {
        rows.write_gradient(team, i, [&](std::size_t c, int) { return c == label ? -factor : 0; });
      });
    });
  }
};

/// The mean over a row of squared differences from `targets`, n_outputs for each row.
template <class T>
struct MeanSquare {
  static constexpr int max_threads = LossRows<T>::most_threads;
  LossRows<T> rows;
  const float* targets;

  [[nodiscard]] Grid grid() const { return rows.grid(); }
  void touches(const auto& tell) const { rows.touches(tell, "mean_square", targets, rows.n_rows * rows.n_outputs); }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const float* const wanted = targets + team.block() * rows.n_outputs;
    const auto n = static_cast<double>(rows.n_outputs);
    auto squares = team.template per_thread<double>(0);
    team.each([&](int thread) {
      const float factor = rows.gradient == nullptr ? 0 : rows.factor();
      rows.for_packs(team, thread, rows.row(team), [&](const Pack<T>& pack, std::size_t i) {
        const auto difference = [&](std::size_t c, int k) {
          return static_cast<double>(to_float(pack[k])) - static_cast<double>(wanted[c]);
        };
        for (int k = 0; k < Pack<T>::size; ++k) {
          const std::size_t c = i * Pack<T>::size + static_cast<std::size_t>(k);
          if (c < rows.n_outputs) squares[thread] += difference(c, k) * difference(c, k);
        }
        if (rows.gradient == nullptr) return;
        rows.write_gradient(
            team, i, [&](std::size_t c, int k) { return static_cast<float>(2 * difference(c, k) / n) * factor; });
      });
    });
    const double sum = team.sum(squares);
    team.each([&](int thread) {
      if (thread == 0) rows.losses[team.block()] = {sum / n, 0, 0};
    });
  }
};

/// Adds the losses of rows to totals: each of 256 threads adds a run of rows in order, then Team::sum() adds up.
struct SumLosses {
  static constexpr int max_threads = 256;
  std::size_t n_rows;
  const SampleLoss* losses;
  LossTotals* totals;

  [[nodiscard]] static Grid grid() { return {.n_blocks = 1, .n_threads = max_threads}; }
  void touches(const auto& tell) const {
    tell("sum_losses", {region(losses, n_rows), region(totals, 1)}, {region(totals, 1)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    auto loss = team.template per_thread<double>(0);
    auto top1 = team.template per_thread<unsigned>(0);
    auto top5 = team.template per_thread<unsigned>(0);
    team.each([&](int thread) {
      const auto i = static_cast<std::size_t>(thread), n = static_cast<std::size_t>(team.n_threads());
      for (std::size_t row = n_rows * i / n; row < n_rows * (i + 1) / n; ++row) {
        loss[thread] += losses[row].loss;
        top1[thread] += losses[row].is_top1;
        top5[thread] += losses[row].is_top5;
      }
    });
    const double sum = team.sum(loss);
    const unsigned n_top1 = team.sum(top1), n_top5 = team.sum(top5);
    team.each([&](int thread) {
      if (thread == 0)
        *totals = {totals->loss + sum, totals->n + n_rows, totals->n_top1 + n_top1, totals->n_top5 + n_top5};
    });
  }
};

}  // namespace lockstep::nn::cuda
