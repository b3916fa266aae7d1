#include <cstring>
#include <numeric>

#include "kernel_rows.hpp"
#include "nn/cuda/kernels/column_sums.hpp"
#include "nn/cuda/kernels/elementwise.hpp"
#include "nn/cuda/kernels/fold.hpp"
#include "nn/cuda/kernels/loss.hpp"
#include "nn/cuda/kernels/samples.hpp"
#include "nn/cuda/kernels/softmax_cross_entropy.hpp"
#include "nn/ops/batch_norm/backward.hpp"
#include "nn/ops/batch_norm/normalize.hpp"
#include "nn/ops/batch_norm/ranks.hpp"
#include "nn/ops/batch_norm/statistics.hpp"
#include "nn/ops/concat/kernels.hpp"
#include "nn/ops/dropout/kernels.hpp"
#include "nn/ops/embedding/kernels.hpp"
#include "nn/ops/global_avg_pool/kernels.hpp"
#include "nn/ops/layer_norm/kernels.hpp"
#include "nn/ops/max_pool/kernels.hpp"

namespace lockstep::perf {

void KernelArrays::send(void* to, const void* from, std::size_t n_bytes) {
  const runtime::Buffer here{core::Bytes{n_bytes}, runtime::Memory::pinned};
  std::memcpy(here.bytes().data(), from, n_bytes);
  runtime::Stream stream;
  stream.copy(runtime::DeviceSpan<std::byte>::at(static_cast<std::byte*>(to), n_bytes), here.bytes());
  stream.wait();
}

namespace {

using namespace nn::cuda;  // NOLINT(google-build-using-namespace)
using T = core::bfloat16;

constexpr std::size_t of_value = sizeof(T);
constexpr std::size_t n_channels = 256;

class NetworkRows {
 public:
  NetworkRows(KernelArrays& arrays, std::size_t n)
      : arrays_{arrays}, n_{n}, x_{arrays.make<T>(n)}, y_{arrays.make<T>(n)}, out_{arrays.make<T>(n)} {
    numbers_ = arrays_.make<core::StepNumbers>(std::vector<core::StepNumbers>(1));
  }

  std::vector<KernelRow> make() {
    elements();
    batch_norm();
    layer_norm();
    pools();
    ids();
    losses();
    return std::move(rows_);
  }

 private:
  template <class Body>
  void add(const char* name, std::size_t n_bytes, const Body& body) {
    rows_.push_back({name, n_bytes, [body](runtime::Stream& stream) { enqueue(stream, body); }});
  }

  void elements() {
    auto* const floats = arrays_.make<float>(n_);
    auto* const bias = arrays_.make<float>(n_channels);
    add("rectify", 2 * of_value * n_, Rectify<T>{n_, x_, out_});
    add("rectify_backward", 3 * of_value * n_, RectifyBackward<T>{n_, x_, y_, nullptr, out_});
    add("sum", 3 * of_value * n_, Sum<T>{n_, x_, y_, true, out_});
    add("add_bias", 2 * of_value * n_ + n_channels * sizeof(float), AddBias<T>{n_, n_channels, x_, bias, false, out_});
    add("keep_gradient", (of_value + sizeof(float)) * n_, KeepGradient<T>{n_, x_, nullptr, floats});
    const std::size_t n_samples = n_ / (8 * 1024);
    add("take_samples", n_samples * 1024 * (3 * sizeof(float) + 8 * of_value),
        TakeSamples<T>{n_samples, 1024, 3, 8, floats, out_});
    // Squares of 32x32 pixels, with those around them for a kernel of 7; all eight channels of a pixel are read.
    const Fold fold{7};
    const FoldImages<T> images{fold, n_samples / 2, 32, 32, x_, out_};
    add("fold_images", (n_samples / 2 * 1024 * 8 + images.n() * Fold::n_channels) * of_value, images);
    auto* const of_samples = arrays_.make<std::uint64_t>(n_ / n_channels);
    add("drop_elements", 2 * of_value * n_ + n_ / n_channels * sizeof(std::uint64_t) + sizeof(core::StepNumbers),
        DropElements<T>{.n_samples = n_ / n_channels,
                        .n_positions = 1,
                        .n_channels = n_channels,
                        .x = x_,
                        .out = out_,
                        .ids = of_samples,
                        .numbers = numbers_,
                        .seed = 1,
                        .node = 0,
                        .threshold = 1U << 31,
                        .factor = 2});
    add("copy_columns", 2 * of_value * n_,
        CopyColumns<T>{n_ / n_channels, n_channels, 0, x_, n_channels, 0, out_, n_channels, 0});
  }

  void batch_norm() {
    const std::size_t n_rows = n_ / n_channels;
    const GroupedRows rows{n_rows, n_rows, n_channels};
    auto* const moments = arrays_.make<Moments>(n_channels);
    auto* const partial_moments = arrays_.make<Moments>(rows.n_partials());
    auto* const sums = arrays_.make<GradientSums>(n_channels);
    auto* const partial_sums = arrays_.make<GradientSums>(rows.n_partials());
    auto* const shared = arrays_.make<double>(shared_elements(n_channels));
    auto* const mask = arrays_.make<std::uint8_t>(n_ / pack_channels);
    std::vector<float*> floats;  // mean, inverse, offset, slope, weight, bias, running mean and variance
    for (int i = 0; i < 8; ++i) floats.push_back(arrays_.make<float>(n_channels));
    const std::size_t of_floats = n_channels * sizeof(float), of_moments = n_channels * sizeof(Moments);
    const std::size_t of_sums = n_channels * sizeof(GradientSums),
                      of_shared = shared_elements(n_channels) * sizeof(double);
    const PassedGradient<T> passed{y_, nullptr, mask};
    add("partial_moments", of_value * n_ + rows.n_partials() * sizeof(Moments),
        PartialMoments<T>{rows, x_, partial_moments});
    add("group_moments", rows.n_partials() * sizeof(Moments) + of_moments + 2 * of_floats,
        GroupMoments{rows, partial_moments, 1e-5, moments, floats[0], floats[1], {}});
    add("move_statistics", of_moments + sizeof(core::StepNumbers) + 4 * of_floats,
        MoveStatistics{1, n_channels, moments, 0.1, numbers_, floats[6], floats[7]});
    add("invert_deviations", 2 * of_floats, InvertDeviations{n_channels, floats[7], 1e-5, floats[1]});
    add("normalize", 2 * of_value * n_ + n_ / pack_channels + 4 * of_floats,
        Normalize<T>{rows.spread(), x_, nullptr, floats[0], floats[1], floats[4], floats[5], true, out_, mask});
    add("partial_gradients",
        2 * of_value * n_ + n_ / pack_channels + of_floats + rows.n_partials() * sizeof(GradientSums),
        PartialGradients<T>{rows, x_, passed, floats[0], nullptr, partial_sums});
    add("group_gradients", rows.n_partials() * sizeof(GradientSums) + of_sums + 3 * of_floats,
        GroupGradients{rows, partial_sums, floats[1], sums, floats[2], floats[3], {}});
    add("scale_shift_gradients", of_sums + 3 * of_floats,
        ScaleShiftGradients{1, n_channels, sums, floats[1], false, floats[4], floats[5]});
    add("normalize_backward", 3 * of_value * n_ + n_ / pack_channels + 5 * of_floats,
        NormalizeBackward<T>{rows.spread(), x_, passed, floats[0], floats[1], floats[2], floats[3], floats[4], out_});
    add("share_moments", of_moments + of_shared, ShareMoments{n_channels, moments, shared});
    add("join_moments", of_shared + of_moments + 2 * of_floats,
        JoinMoments{n_channels, shared, 1e-5, moments, floats[0], floats[1]});
    add("join_gradients", of_sums + of_moments + 3 * of_floats,
        JoinGradients{n_channels, sums, moments, floats[1], floats[2], floats[3]});
    auto* const column_sums = arrays_.make<double>(rows.n_partials());
    add("partial_sums", of_value * n_ + rows.n_partials() * sizeof(double), PartialSums<T>{rows, x_, column_sums});
    add("column_sums", rows.n_partials() * sizeof(double) + of_floats, ColumnSums{rows, column_sums, false, floats[5]});
  }

  void layer_norm() {
    constexpr std::size_t n_features = 768;
    const std::size_t n_rows = n_ / n_features, n = n_rows * n_features;
    const FeatureRows rows{n_rows, n_features, n_features / pack_channels};
    const GroupedRows summed{n_rows, n_rows, n_features};
    auto* const weight = arrays_.make<float>(n_features);
    auto* const bias = arrays_.make<float>(n_features);
    auto* const mean = arrays_.make<float>(n_rows);
    auto* const inverse = arrays_.make<float>(n_rows);
    auto* const of_weight = arrays_.make<double>(summed.n_partials());
    auto* const of_bias = arrays_.make<double>(summed.n_partials());
    const std::size_t of_features = n_features * sizeof(float), of_rows = n_rows * sizeof(float);
    add("normalize_features", 2 * of_value * n + 2 * of_features + 2 * of_rows,
        NormalizeFeatures<T>{rows, x_, 1e-5, weight, bias, out_, mean, inverse});
    add("normalize_features_backward", 3 * of_value * n + of_features + 2 * of_rows,
        NormalizeFeaturesBackward<T>{rows, x_, y_, weight, mean, inverse, out_});
    add("partial_feature_gradients", 2 * of_value * n + 2 * of_rows + 2 * summed.n_partials() * sizeof(double),
        PartialFeatureGradients<T>{summed, x_, y_, mean, inverse, of_weight, of_bias});
  }

  void pools() {
    const std::size_t n_images = n_ / (64 * 16 * 16), n_out = n_images * 64 * 8 * 8;
    const PoolSizes sizes{.n_images = n_images,
                          .height = 16,
                          .width = 16,
                          .n_channels = 64,
                          .kernel = 3,
                          .stride = 2,
                          .padding = 1,
                          .out_height = 8,
                          .out_width = 8};
    auto* const places = arrays_.make<std::int8_t>(n_out);
    add("pool_maxima", of_value * (n_ + n_out) + n_out, PoolMaxima<T>{sizes, x_, out_, places});
    add("pool_maxima_backward", of_value * (n_ + n_out) + n_out, PoolMaximaBackward<T>{sizes, y_, places, out_});
    add("averages", of_value * (n_ + n_images * 64), Averages<T>{n_images, 256, 64, x_, out_});
    add("averages_backward", of_value * (n_ + n_images * 64), AveragesBackward<T>{n_images, 256, 64, y_, out_});
    constexpr int size = 32;
    const std::size_t n_pictures = n_ / (8 * size * size), n_table = 3 * LookUpPixels<T>::n_levels;
    auto* const pixels = arrays_.make<std::uint8_t>(n_pictures * size * size * 3);
    auto* const views = arrays_.make<ImageView>(n_pictures);
    add("look_up_pixels", n_pictures * (size * size * 3 + sizeof(ImageView)) + sizeof(float) * n_table + of_value * n_,
        LookUpPixels<T>{n_pictures, size, size, 3, pixels, views, arrays_.make<float>(n_table), size, size, out_});
  }

  /// Tables whose rows are all read or written once.
  void ids() {
    const std::size_t n_rows = n_ / n_channels;
    std::vector<std::int64_t> ids(n_rows);
    std::iota(ids.begin(), ids.end(), 0);
    auto* const table = arrays_.make<float>(n_);
    auto* const has_bad = arrays_.make<std::uint32_t>(1);
    auto* const rows = arrays_.make(ids);
    auto* const sorted = arrays_.make(std::vector<std::uint64_t>(ids.begin(), ids.end()));
    auto* const samples = arrays_.make(std::vector<std::uint32_t>(ids.begin(), ids.end()));
    add("gather_rows", 2 * n_ * of_value + n_rows * sizeof(std::int64_t) + sizeof(std::uint32_t),
        GatherRows<T>{n_rows, n_channels, n_rows, x_, rows, 1, 0, out_, has_bad});
    add("add_segments", n_ * (2 * sizeof(float) + of_value) + n_rows * (sizeof(std::uint64_t) + sizeof(std::uint32_t)),
        AddSegments<T>{n_rows, n_channels, n_rows, sorted, samples, y_, table});
  }

  void losses() {
    constexpr std::size_t n_classes = 1024;
    auto* const losses = arrays_.make<SampleLoss>(n_ / n_classes);
    auto* const labels = arrays_.make<std::int64_t>(n_ / n_classes);
    auto* const has_bad = arrays_.make<std::uint32_t>(1);
    const auto rows_of = [&](std::size_t n_outputs) {
      const std::size_t row_elements = (n_outputs + pack_channels - 1) / pack_channels * pack_channels;
      return LossRows<T>{.n_rows = n_ / row_elements,
                         .n_outputs = n_outputs,
                         .row_elements = row_elements,
                         .outputs = x_,
                         .gradient = out_,
                         .numbers = numbers_,
                         .loss_scale = nullptr,
                         .losses = losses,
                         .has_bad_label = has_bad};
    };
    const auto n_bytes_of = [](const LossRows<T>& rows, std::size_t of_label) {
      return rows.n_rows * (2 * of_value * rows.row_elements + sizeof(SampleLoss) + of_label) +
             sizeof(core::StepNumbers) + sizeof(std::uint32_t);
    };
    const LossRows<T> rows = rows_of(n_classes), long_rows = rows_of(50257);
    add("softmax_cross_entropy", n_bytes_of(rows, sizeof(std::int64_t)), SoftmaxCrossEntropy<T>{rows, labels, 0});
    add("softmax_of_long_rows", n_bytes_of(long_rows, sizeof(std::int64_t)),
        SoftmaxCrossEntropy<T>{long_rows, labels, 0});
    add("negative_log", n_bytes_of(rows, sizeof(std::int64_t)), NegativeLog<T>{rows, labels});
    add("mean_square", n_bytes_of(rows, n_classes * sizeof(float)), MeanSquare<T>{rows, arrays_.make<float>(n_)});
    add("sum_losses", rows.n_rows * sizeof(SampleLoss) + 2 * sizeof(LossTotals),
        SumLosses{rows.n_rows, losses, arrays_.make<LossTotals>(1)});
  }

  KernelArrays& arrays_;
  std::size_t n_;
  T* x_;
  T* y_;
  T* out_;
  core::StepNumbers* numbers_ = nullptr;
  std::vector<KernelRow> rows_{};
};

}  // namespace

std::vector<KernelRow> network_rows(KernelArrays& arrays, std::size_t n) { return NetworkRows{arrays, n}.make(); }

}  // namespace lockstep::perf
