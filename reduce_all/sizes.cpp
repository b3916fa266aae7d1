#include "reduce_all/sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace lockstep::reduce_all {
namespace {

constexpr std::size_t most_sizes = 100'000;  // more would take too long, even to list

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t element) { return (bytes + element - 1) / element * element; }

// `bytes` as whole elements of `dtype`: rounded if every type is requested, else refused.
std::uint64_t whole_elements(const Options& options, core::DType dtype, core::Bytes bytes, std::string_view flag) {
  const std::uint64_t element = core::size_of(dtype);
  const std::uint64_t rounded = round_up(bytes.value, element);
  if (rounded == bytes.value || options.is_every_dtype) return rounded;
  core::fail_usage(
      {.what = fmt::format("{} B is not a multiple of the {} B of {}", bytes.value, element, core::name(dtype)),
       .where = std::string{flag},
       .expected = "a whole number of elements",
       .fix = fmt::format("use {}, or another --dtype", rounded)});
}

// The size after `bytes`, a whole number of elements larger; nothing if it would exceed the largest.
std::optional<std::uint64_t> grow_by_factor(double factor, std::uint64_t element, std::uint64_t bytes,
                                            std::uint64_t largest) {
  const double next = static_cast<double>(bytes) * factor;
  if (next >= 0x1p64) return std::nullopt;
  const std::uint64_t grown = std::max(bytes + element, static_cast<std::uint64_t>(next) / element * element);
  if (grown > largest) return std::nullopt;
  return grown;
}

std::optional<std::uint64_t> grow_by_step(std::uint64_t step, std::uint64_t bytes, std::uint64_t largest) {
  if (largest - bytes < step) return std::nullopt;
  return bytes + step;
}

/// Sizes for one type: min_bytes times powers of step_factor, or in steps of step_bytes.
std::vector<core::Bytes> sizes(const Options& options, core::DType dtype) {
  const std::uint64_t element = core::size_of(dtype);
  const std::uint64_t step =
      options.step_bytes ? whole_elements(options, dtype, *options.step_bytes, "--step-bytes") : 0;
  std::vector<core::Bytes> result;
  const std::uint64_t largest =
      options.is_every_dtype ? round_up(options.max_bytes.value, element) : options.max_bytes.value;
  std::optional<std::uint64_t> bytes = whole_elements(options, dtype, options.min_bytes, "--min-bytes");
  while (bytes) {
    result.push_back({*bytes});
    if (result.size() > most_sizes)
      core::fail_usage({.what = fmt::format("these flags give more than {} sizes", most_sizes),
                        .where = "--step-factor, --step-bytes",
                        .expected = "a larger step, or -e nearer to -b",
                        .fix = ""});
    bytes =
        step > 0 ? grow_by_step(step, *bytes, largest) : grow_by_factor(options.step_factor, element, *bytes, largest);
  }
  return result;
}

}  // namespace

std::vector<comm::Call> find_calls(const Options& options) {
  const bool reduces = options.collective != comm::Collective::all_gather;
  const std::vector<comm::ReduceOp> ops = reduces ? options.op : std::vector{comm::ReduceOp::sum};
  std::vector<comm::Call> calls;
  for (const core::DType dtype : options.dtype) {
    const std::vector<core::Bytes> all_sizes = sizes(options, dtype);
    for (const comm::ReduceOp op : ops) {
      for (const core::Bytes bytes : all_sizes)
        calls.push_back({options.collective, dtype, op, bytes.value / core::size_of(dtype)});
    }
  }
  return calls;
}

core::Bytes largest_size(std::span<const comm::Call> calls) {
  core::Bytes largest;
  for (const comm::Call& call : calls) largest = std::max(largest, call.bytes());
  return largest;
}

}  // namespace lockstep::reduce_all
