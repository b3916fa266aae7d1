// Cross-entropy of softmax with its gradient in one pass over memory: a block for each row.
// Invariant: as loss.hpp. All but the logarithm of a row's sum has the same bits on a GPU and on the host.
// Used by nn/cuda.
#pragma once

#include <cmath>

#include "nn/cuda/kernels/loss.hpp"

namespace lockstep::nn::cuda {

/// The loss of the softmax of outputs. Rows are kept in a block's scratch memory if they fit; else they are read
/// thrice.
template <class T>
struct SoftmaxCrossEntropy {
  static constexpr int max_threads = LossRows<T>::most_threads;
  LossRows<T> rows;
  const std::int64_t* labels;
  double label_smoothing;
  std::size_t most_scratch_bytes = 47 * 1024;  ///< of a block on the device

  LOCKSTEP_HOST_DEVICE std::size_t kept_elements() const {
    return rows.row_elements * sizeof(T) <= most_scratch_bytes ? rows.row_elements : 0;
  }
  [[nodiscard]] Grid grid() const { return rows.grid(kept_elements() * sizeof(T)); }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const std::size_t row = team.block();
    if (!rows.is_class(labels[row])) return rows.refuse_label(team);
    const auto label = static_cast<std::size_t>(labels[row]);
    const LabelOutput of_label{label, to_float(rows.outputs[row * rows.row_elements + label])};
    T* const kept = team.template scratch<T>(kept_elements()).data();
    const T* const source = kept_elements() > 0 ? kept : rows.row(team);
    const float max = find_max(team, kept);

    auto exponentials = team.template per_thread<double>(0);
    auto outputs = team.template per_thread<double>(0);
    auto before = team.template per_thread<unsigned>(0);
    team.each([&](int thread) {
      rows.for_packs(team, thread, source, [&](const Pack<T>& pack, std::size_t i) {
        float sum = 0, total = 0;  // doubles only add up packs
        for (int k = 0; k < Pack<T>::size; ++k) {
          const std::size_t c = i * Pack<T>::size + static_cast<std::size_t>(k);
          if (c >= rows.n_outputs) continue;
          const float x = to_float(pack[k]);
          sum += exponential(x - max);
          total += x;
          before[thread] += of_label.is_after(x, c) ? 1 : 0;
        }
        exponentials[thread] += static_cast<double>(sum);
        outputs[thread] += static_cast<double>(total);
      });
    });
    const double sum = team.sum(exponentials), total = team.sum(outputs);
    const unsigned n_before = team.sum(before);
    const auto n = static_cast<double>(rows.n_outputs);
    const double share = label_smoothing / n, of_others = 1 - label_smoothing;

    team.each([&](int thread) {
      if (thread == 0) {
        const double log_sum = static_cast<double>(max) + std::log(sum);
        rows.losses[row] = of_label.sample(
            of_others * (log_sum - static_cast<double>(of_label.output)) + share * (n * log_sum - total), n_before);
      }
      if (rows.gradient == nullptr) return;
      const auto inverse = static_cast<float>(1 / sum), target = static_cast<float>(of_others);
      const auto subtracted = static_cast<float>(share);
      const float factor = rows.factor();
      rows.for_packs(team, thread, source, [&](const Pack<T>& pack, std::size_t i) {
        rows.write_gradient(team, i, [&](std::size_t c, int k) {
          const float probability = exponential(to_float(pack[k]) - max) * inverse;
          return (probability - subtracted - (c == label ? target : 0)) * factor;
        });
      });
    });
  }

 private:
  /// The maximum of the row; also stores the row in `kept`.
  template <class Team>
  LOCKSTEP_HOST_DEVICE float find_max(Team& team, T* kept) const {
    auto largest = team.template per_thread<float>(-std::numeric_limits<float>::infinity());
    team.each([&](int thread) {
      rows.for_packs(team, thread, rows.row(team), [&](const Pack<T>& pack, std::size_t i) {
        if (kept_elements() > 0) runtime::kernel::store(kept, i, pack);
        for (int k = 0; k < Pack<T>::size; ++k) {
          const float x = to_float(pack[k]);
          if (i * Pack<T>::size + static_cast<std::size_t>(k) < rows.n_outputs && x > largest[thread])
            largest[thread] = x;
        }
      });
    });
    return team.reduce(largest, [](float a, float b) { return a > b ? a : b; });
  }
};

template <class T>
void enqueue(runtime::Stream& stream, const SoftmaxCrossEntropy<T>& body);

}  // namespace lockstep::nn::cuda
