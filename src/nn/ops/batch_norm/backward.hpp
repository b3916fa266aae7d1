// Gradients of batch normalization: of scale and shift, of its input, and of the residual that was added.
// Invariant: sums over rows in fixed orders, in double from block to block.
// Used by device.cpp.
#pragma once

#include "nn/cuda/kernels/rows.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// The part of the output's gradient that reaches the normalized values: gradient + skip where the mask is 1.
template <class T>
struct PassedGradient {
  const T* gradient;
  const T* skip;             ///< another gradient of the same value, added when it is read; or null
  const std::uint8_t* mask;  ///< ReLU's, as Normalize::mask; or null

  struct Loaded {
    Channels<T> gradient, skip;
    unsigned mask;
  };
  LOCKSTEP_HOST_DEVICE Loaded load(std::size_t at) const {
    return {load_channels(gradient, at), load_channels_or_0(skip, at),
            mask == nullptr ? 0xffU : static_cast<unsigned>(mask[at])};
  }
  LOCKSTEP_HOST_DEVICE float value(const Loaded& loaded, int k) const {
    const float sum = skip == nullptr ? loaded.gradient[k] : loaded.gradient[k] + loaded.skip[k];
    return (loaded.mask >> k & 1) != 0 ? sum : 0;
  }
};

/// Sums over rows: of gradients, and of their products with x - mean.
struct GradientSums {
  double gradient;
  double product;
};

/// Computes the sums of each part of each group.
template <class T>
struct PartialGradients {
  static constexpr int max_threads = GroupedRows::n_threads;
  static constexpr unsigned min_blocks = sizeof(T) == 2 ? GroupedRows::min_blocks : 3;  // floats need 80 registers
  static constexpr std::size_t n_scratch = max_threads * pack_channels;
  GroupedRows rows;
  const T* x;
  PassedGradient<T> passed;
  const float* mean;
  T* residual_gradient;  ///< the passed gradient itself, unless null; may be passed.gradient
  GradientSums* partials;

  [[nodiscard]] Grid grid() const { return rows.grid(2 * n_scratch * sizeof(float)); }
  void touches(const auto& tell) const {
    const std::size_t n = rows.n_elements();
    tell("partial_gradients",
         {region(x, n), region(passed.gradient, n), region(passed.skip, passed.skip == nullptr ? 0 : n),
          region(passed.mask, passed.mask == nullptr ? 0 : n / pack_channels),
          region(mean, rows.n_groups() * rows.n_channels())},
         {region(partials, rows.n_partials()), region(residual_gradient, residual_gradient == nullptr ? 0 : n)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const GroupedRows::Part part = rows.part(team.block());
    float* const gradients = team.template scratch<float>(n_scratch).data();
    float* const products = team.template scratch<float>(n_scratch).data();
    struct Loaded {
      Channels<T> x;
      typename PassedGradient<T>::Loaded passed;
    };
    team.each([&](int thread) {
      rows.with_column(part, thread, [&](std::size_t pack, int lane) {
        const auto center = load_channels(mean, part.group * rows.n_packs() + pack);
        Pack<float, pack_channels> sum{}, product{};
        rows.for_rows<1>(
            part, pack, lane,
            [&](std::size_t at) {
              return Loaded{load_channels(x, at), passed.load(at)};
            },
            [&](std::size_t at, const Loaded& loaded) {
              Channels<T> rounded;
              for (int k = 0; k < pack_channels; ++k) {
                const float g = passed.value(loaded.passed, k);
                sum[k] += g;
                product[k] = fused(g, loaded.x[k] - center[k], product[k]);
                rounded.set(k, g);
              }
              if (residual_gradient != nullptr) store_channels(residual_gradient, at, rounded);
            });
        runtime::kernel::store(gradients, static_cast<std::size_t>(thread), sum);
        runtime::kernel::store(products, static_cast<std::size_t>(thread), product);
      });
    });
    team.each([&](int thread) {
      rows.with_channel(part, thread, [&](std::size_t place, std::size_t channel) {
        GradientSums sums{0, 0};
        for (int lane = 0; lane < rows.n_lanes(); ++lane) {
          const std::size_t at = static_cast<std::size_t>(lane) * rows.place_stride() + place;
          sums.gradient += static_cast<double>(gradients[at]);
          sums.product += static_cast<double>(products[at]);
        }
        partials[rows.partial(part.group, part.index, channel)] = sums;
      });
    });
  }
};

/// Computes the gradients of scale and shift: sums over groups, in order.
struct ScaleShiftGradients {
  std::size_t n_groups;
  std::size_t n_channels;
  const GradientSums* sums;
  const float* inverse;
  bool adds;  ///< to the present values
  float* of_weight;
  float* of_bias;

  [[nodiscard]] std::size_t n() const { return n_channels; }
  void touches(const auto& tell) const {
    const std::size_t of_groups = n_groups * n_channels, n_read = adds ? n_channels : 0;
    tell("scale_shift_gradients",
         {region(sums, of_groups), region(inverse, of_groups), region(of_weight, n_read), region(of_bias, n_read)},
         {region(of_weight, n_channels), region(of_bias, n_channels)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t channel) const {
    double weight = 0, bias = 0;
    for (std::size_t at = channel; at < n_groups * n_channels; at += n_channels) {
      weight += sums[at].product * static_cast<double>(inverse[at]);
      bias += sums[at].gradient;
    }
    of_weight[channel] = (adds ? of_weight[channel] : 0) + static_cast<float>(weight);
    of_bias[channel] = (adds ? of_bias[channel] : 0) + static_cast<float>(bias);
  }
};

/// Computes the sums of whole groups: arrays of n_groups times n_channels.
struct GroupGradients {
  static constexpr int max_threads = PartJoin::n_threads;
  GroupedRows rows;
  const GradientSums* partials;
  const float* inverse;
  GradientSums* sums;
  float* offset;  ///< the gradient of the input subtracts offset + (x - mean) * slope
  float* slope;
  ScaleShiftGradients of_parameters;  ///< from the sums of one group; or without channels

  [[nodiscard]] Grid grid() const { return PartJoin::grid<GradientSums>(rows); }
  void touches(const auto& tell) const {
    const std::size_t n = rows.n_groups() * rows.n_channels();
    const ScaleShiftGradients& of = of_parameters;
    const std::size_t n_read = of.adds ? of.n_channels : 0;
    tell("group_gradients",
         {region(partials, rows.n_partials()), region(inverse, n), region(of.of_weight, n_read),
          region(of.of_bias, n_read)},
         {region(sums, n), region(offset, n), region(slope, n), region(of.of_weight, of.n_channels),
          region(of.of_bias, of.n_channels)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    PartJoin::run<GradientSums>(
        team, rows,
        [&](int lane, std::size_t group, std::size_t channel) {
          GradientSums all{0, 0};
          for (auto part = static_cast<std::size_t>(lane); part < rows.n_parts(); part += PartJoin::n_lanes) {
            const GradientSums& one = partials[rows.partial(group, part, channel)];
            all = {all.gradient + one.gradient, all.product + one.product};
          }
          return all;
        },
        [](const GradientSums* of_lanes) {
          GradientSums all{0, 0};
          for (int lane = 0; lane < PartJoin::n_lanes; ++lane) {
            const GradientSums& one = of_lanes[lane * pack_channels];
            all = {all.gradient + one.gradient, all.product + one.product};
          }
          return all;
        },
        [&](const GradientSums& all, std::size_t group, std::size_t channel) {
          const std::size_t at = group * rows.n_channels() + channel;
          const auto n = static_cast<double>(rows.n_rows_of(group)), factor = static_cast<double>(inverse[at]);
          sums[at] = all;
          offset[at] = static_cast<float>(all.gradient / n);
          slope[at] = static_cast<float>(all.product / n * factor * factor);
          if (of_parameters.n_channels > 0) of_parameters(channel);
        });
  }
};

/// Computes the gradient of x. If PartialGradients wrote residual_gradient, pass that as the gradient, without mask and
/// skip: both are already applied.
template <class T>
struct NormalizeBackward {
  static constexpr int max_threads = GroupedRows::n_threads;
  static constexpr unsigned min_blocks = GroupedRows::spread_blocks;
  GroupedRows rows;  ///< spread()
  const T* x;
  PassedGradient<T> passed;
  const float* mean;
  const float* inverse;
  const float* offset;
  const float* slope;
  const float* weight;
  T* out;  ///< may be x, passed.gradient or passed.skip

  [[nodiscard]] Grid grid() const { return rows.grid(0); }
  void touches(const auto& tell) const {
    const std::size_t n = rows.n_elements(), of_groups = rows.n_groups() * rows.n_channels();
    tell("normalize_backward",
         {region(x, n), region(passed.gradient, n), region(passed.skip, passed.skip == nullptr ? 0 : n),
          region(passed.mask, passed.mask == nullptr ? 0 : n / pack_channels), region(mean, of_groups),
          region(inverse, of_groups), region(offset, of_groups), region(slope, of_groups),
          region(weight, rows.n_channels())},
         {region(out, n)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const GroupedRows::Part part = rows.part(team.n_blocks() - 1 - team.block());  // as Normalize
    struct Loaded {
      Channels<T> x;
      typename PassedGradient<T>::Loaded passed;
    };
    team.each([&](int thread) {
      rows.with_column(part, thread, [&](std::size_t pack, int lane) {
        const std::size_t of_group = part.group * rows.n_packs() + pack;
        const auto center = load_channels(mean, of_group), subtracted = load_channels(offset, of_group);
        const auto tilt = load_channels(slope, of_group), scale = load_channels(weight, pack);
        auto factor = load_channels(inverse, of_group);
        for (int k = 0; k < pack_channels; ++k) factor.set(k, factor[k] * scale[k]);
        rows.for_rows<sizeof(T) == 2 ? 2 : 1>(
            part, pack, lane,
            [&](std::size_t at) {
              return Loaded{load_channels(x, at), passed.load(at)};
            },
            [&](std::size_t at, const Loaded& loaded) {
              Channels<T> result;
              for (int k = 0; k < pack_channels; ++k) {
                const float deviation = loaded.x[k] - center[k];
                const float g = passed.value(loaded.passed, k) - subtracted[k];
                result.set(k, fused(-deviation, tilt[k], g) * factor[k]);
              }
              store_channels(out, at, result);
            });
      });
    });
  }
};

}  // namespace lockstep::nn::cuda
