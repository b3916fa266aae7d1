#include "training/shard/drawing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

namespace lockstep::training::shard {
namespace {

constexpr std::uint64_t largest_drawing = 32;
constexpr std::uint64_t most_listed = 8;
constexpr std::string_view shades = " .:-=+*#%@";

std::vector<double> to_doubles(core::DType dtype, std::span<const std::byte> values) {
  return core::visit(dtype, [&]<class T>(std::type_identity<T>) {
    std::vector<double> doubles(values.size() / sizeof(T));
    for (std::size_t i = 0; i < doubles.size(); ++i) {
      T value{};
      std::memcpy(&value, values.data() + i * sizeof(T), sizeof(T));
      if constexpr (std::is_arithmetic_v<T>)
        doubles[i] = static_cast<double>(value);
      else
        doubles[i] = static_cast<double>(static_cast<float>(value));
    }
    return doubles;
  });
}

std::string summarize_values(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  double sum = 0;
  std::size_t n = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
    ++n;
  }
  const std::size_t n_nan = values.size() - n;
  if (n == 0) return fmt::format("{} NaN", n_nan);
  std::string text = fmt::format("min {:.4g}, mean {:.4g}, max {:.4g}", low, sum / static_cast<double>(n), high);
  if (n_nan > 0) text += fmt::format(", {} NaN", n_nan);
  return text;
}

}  // namespace

std::string describe_values(const data::ArraySpec& spec, std::span<const std::byte> values) {
  const std::vector<double> doubles = to_doubles(spec.dtype, values);
  if (doubles.size() > most_listed) return summarize_values(doubles);
  if (doubles.size() == 1) return fmt::format("{:.6g}", doubles.front());
  return fmt::format("[{:.6g}]", fmt::join(doubles, ", "));
}

std::string draw(const data::ArraySpec& spec, std::span<const std::byte> pixels) {
  const bool is_image = spec.dtype == core::DType::uint8 && (spec.shape.size() == 2 || spec.shape.size() == 3);
  if (!is_image || spec.shape[0] > largest_drawing || spec.shape[1] > largest_drawing) return "";
  const std::uint64_t n_channels = spec.shape.size() == 3 ? spec.shape[2] : 1;
  if (n_channels == 0) return "";
  std::string text;
  for (std::uint64_t row = 0; row < spec.shape[0]; ++row) {
    for (std::uint64_t column = 0; column < spec.shape[1]; ++column) {
      std::uint64_t sum = 0;
      for (std::uint64_t channel = 0; channel < n_channels; ++channel)
        sum += std::to_integer<std::uint64_t>(pixels[(row * spec.shape[1] + column) * n_channels + channel]);
      text.append(2, shades[sum * shades.size() / (n_channels * 256)]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace lockstep::training::shard
