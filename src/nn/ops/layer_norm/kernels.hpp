// Layer normalization and its gradients: a block for each row; sums over rows as in column_sums.hpp.
// Invariant: sums have one fixed order, so the same bits on a GPU and on the host. Padding of results is 0.
// Used by device.cpp.
#pragma once

#include <algorithm>

#include "nn/cuda/kernels/rows.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// Rows of n_packs packs; channels from n_features on are padding.
struct FeatureRows {
  static constexpr int most_threads = 256;

  std::size_t n_rows;
  std::size_t n_features;
  std::size_t n_packs;

  [[nodiscard]] std::size_t n_elements() const { return n_rows * n_packs * pack_channels; }
  [[nodiscard]] std::size_t n_channels() const { return n_packs * pack_channels; }
  [[nodiscard]] Grid grid() const {
    const std::size_t warps = std::min<std::size_t>((n_packs + 31) / 32, most_threads / 32);
    return {static_cast<unsigned>(n_rows), 32 * static_cast<int>(warps), 0};
  }
  LOCKSTEP_HOST_DEVICE bool is_feature(std::size_t pack, int k) const {
    return pack * pack_channels + static_cast<std::size_t>(k) < n_features;
  }
  /// f(pack of the row, pack of the array) for the packs of the block's row that belong to one thread.
  template <class Team, class F>
  LOCKSTEP_HOST_DEVICE void for_packs(const Team& team, int thread, const F& f) const {
    const std::size_t first = team.block() * n_packs;
    const auto stride = static_cast<std::size_t>(team.n_threads());
    for (auto pack = static_cast<std::size_t>(thread); pack < n_packs; pack += stride) f(pack, first + pack);
  }
};

template <class T>
struct NormalizeFeatures {
  static constexpr int max_threads = FeatureRows::most_threads;
  FeatureRows rows;
  const T* x;
  double eps;
  const float* weight;
  const float* bias;
  T* out;
  float* mean;     ///< of each row, unless null
  float* inverse;  ///< of its deviation, unless null

  [[nodiscard]] Grid grid() const { return rows.grid(); }
  void touches(const auto& tell) const {
    const std::size_t n = rows.n_elements(), n_kept = mean == nullptr ? 0 : rows.n_rows;
    tell("normalize_features", {region(x, n), region(weight, rows.n_channels()), region(bias, rows.n_channels())},
         {region(out, n), region(mean, n_kept), region(inverse, n_kept)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const auto n = static_cast<float>(rows.n_features);
    auto sums = team.template per_thread<float>(0);
    team.each([&](int thread) {
      rows.for_packs(team, thread, [&](std::size_t, std::size_t at) {
        const auto values = load_channels(x, at);
        for (int k = 0; k < pack_channels; ++k) sums[thread] += values[k];
      });
    });
    const float center = team.sum(sums) / n;
    auto squares = team.template per_thread<float>(0);
    team.each([&](int thread) {
      rows.for_packs(team, thread, [&](std::size_t pack, std::size_t at) {
        const auto values = load_channels(x, at);
        for (int k = 0; k < pack_channels; ++k) {
          const float deviation = values[k] - center;
          squares[thread] += rows.is_feature(pack, k) ? deviation * deviation : 0;
        }
      });
    });
    const double variance = static_cast<double>(team.sum(squares) / n);
    const auto factor = static_cast<float>(1 / __builtin_sqrt(variance + eps));
    team.each([&](int thread) {
      if (thread == 0 && mean != nullptr) {
        mean[team.block()] = center;
        inverse[team.block()] = factor;
      }
      rows.for_packs(team, thread, [&](std::size_t pack, std::size_t at) {
        const auto values = load_channels(x, at);
        const auto scale = load_channels(weight, pack), shift = load_channels(bias, pack);
        store_each(out, at, [&](int k) {
          return rows.is_feature(pack, k) ? (values[k] - center) * factor * scale[k] + shift[k] : 0;
        });
      });
    });
  }
};

/// The gradient of x.
template <class T>
struct NormalizeFeaturesBackward {
  static constexpr int max_threads = FeatureRows::most_threads;
  FeatureRows rows;
  const T* x;
  const T* gradient;
  const float* weight;
  const float* mean;
  const float* inverse;
  T* out;

  [[nodiscard]] Grid grid() const { return rows.grid(); }
  void touches(const auto& tell) const {
    const std::size_t n = rows.n_elements();
    tell("normalize_features_backward",
         {region(x, n), region(gradient, n), region(weight, rows.n_channels()), region(mean, rows.n_rows),
          region(inverse, rows.n_rows)},
         {region(out, n)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const float center = mean[team.block()], factor = inverse[team.block()];
    const auto n = static_cast<float>(rows.n_features);
    // f(k, gradient of the normalized value, normalized value) for the features of a pack
    const auto for_features = [&](std::size_t pack, std::size_t at, const auto& f) {
      const auto values = load_channels(x, at), passed = load_channels(gradient, at);
      const auto scale = load_channels(weight, pack);
      for (int k = 0; k < pack_channels; ++k)
        if (rows.is_feature(pack, k)) f(k, passed[k] * scale[k], (values[k] - center) * factor);
    };
    auto sums = team.template per_thread<float>(0);
    auto products = team.template per_thread<float>(0);
    team.each([&](int thread) {
      rows.for_packs(team, thread, [&](std::size_t pack, std::size_t at) {
        for_features(pack, at, [&](int, float g, float normalized) {
          sums[thread] += g;
          products[thread] += g * normalized;
        });
      });
    });
    const float sum = team.sum(sums) / n, product = team.sum(products) / n;
    team.each([&](int thread) {
      rows.for_packs(team, thread, [&](std::size_t pack, std::size_t at) {
        Pack<float, pack_channels> results{};
        for_features(pack, at,
                     [&](int k, float g, float normalized) { results[k] = (g - sum - normalized * product) * factor; });
        store_each(out, at, [&](int k) { return results[k]; });
      });
    });
  }
};

/// Sums each part's rows for the gradients of weight and bias; ColumnSums joins the parts of each.
template <class T>
struct PartialFeatureGradients {
  static constexpr int max_threads = GroupedRows::n_threads;
  static constexpr unsigned min_blocks = GroupedRows::min_blocks;
  static constexpr std::size_t n_scratch = max_threads * pack_channels;
  GroupedRows rows;  ///< one group
  const T* x;
  const T* gradient;
  const float* mean;
  const float* inverse;
  double* of_weight;  ///< rows.n_partials()
  double* of_bias;

  [[nodiscard]] Grid grid() const { return rows.grid(2 * n_scratch * sizeof(float)); }
  void touches(const auto& tell) const {
    const std::size_t n = rows.n_elements(), n_rows = rows.n_rows_of(0);
    tell("partial_feature_gradients",
         {region(x, n), region(gradient, n), region(mean, n_rows), region(inverse, n_rows)},
         {region(of_weight, rows.n_partials()), region(of_bias, rows.n_partials())});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const GroupedRows::Part part = rows.part(team.block());
    float* const products = team.template scratch<float>(n_scratch).data();
    float* const sums = team.template scratch<float>(n_scratch).data();
    team.each([&](int thread) {
      rows.with_column(part, thread, [&](std::size_t pack, int lane) {
        Pack<float, pack_channels> product{}, sum{};
        const auto stride = static_cast<std::size_t>(rows.n_lanes());
        LOCKSTEP_NO_UNROLL
        for (std::size_t row = part.begin + static_cast<std::size_t>(lane); row < part.end; row += stride) {
          const std::size_t at = row * rows.n_packs() + pack;
          const auto values = load_channels(x, at), passed = load_channels(gradient, at);
          const float center = mean[row], factor = inverse[row];
          for (int k = 0; k < pack_channels; ++k) {
            product[k] += passed[k] * ((values[k] - center) * factor);
            sum[k] += passed[k];
          }
        }
        runtime::kernel::store(products, static_cast<std::size_t>(thread), product);
        runtime::kernel::store(sums, static_cast<std::size_t>(thread), sum);
      });
    });
    team.each([&](int thread) {
      rows.with_channel(part, thread, [&](std::size_t place, std::size_t channel) {
        double product = 0, sum = 0;
        for (int lane = 0; lane < rows.n_lanes(); ++lane) {
          const std::size_t at = static_cast<std::size_t>(lane) * rows.place_stride() + place;
          product += static_cast<double>(products[at]);
          sum += static_cast<double>(sums[at]);
        }
        const std::size_t partial = rows.partial(part.group, part.index, channel);
        of_weight[partial] = product;
        of_bias[partial] = sum;
      });
    });
  }
};

}  // namespace lockstep::nn::cuda
