#include "data/importers/matlab.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "io/file.hpp"

namespace lockstep::data {
namespace {

constexpr std::string_view matlab_head = "MATLAB 7.3 MAT-file";

std::uint64_t samples_along(const io::Dimensions& dimensions, SamplesAlong along) {
  if (dimensions.empty()) return 0;
  return along == SamplesAlong::last ? dimensions.back() : dimensions.front();
}

/// Element (i, j, ..., k) of `in` becomes (k, ..., j, i) of `out`.
void turn_round(std::span<const std::byte> in, const io::Dimensions& dimensions, std::size_t element,
                std::span<std::byte> out) {
  std::vector<std::uint64_t> strides, at(dimensions.size(), 0);  // of each dimension, in `out`
  std::uint64_t stride = element;
  for (const std::uint64_t dimension : dimensions) {
    strides.push_back(stride);
    stride *= dimension;
  }
  std::uint64_t place = 0;
  for (std::size_t from = 0; from < in.size(); from += element) {
    std::memcpy(&out[place], &in[from], element);
    for (std::size_t d = dimensions.size(); d-- > 0;) {
      place += strides[d];
      if (++at[d] < dimensions[d]) break;
      place -= strides[d] * dimensions[d];
      at[d] = 0;
    }
  }
}

}  // namespace

bool is_matlab_file(const std::string& path) {
  const io::File file{path};
  std::array<char, matlab_head.size()> head{};
  if (file.size().value < head.size()) return false;
  file.read_at(0, std::as_writable_bytes(std::span{head}));
  return std::string_view{head.data(), head.size()} == matlab_head;
}

void require_matlab_numbers(const io::Hdf5Dataset& dataset, const std::string& place) {
  constexpr std::array<std::string_view, 11> numbers{"double", "single", "logical", "int8",  "uint8", "int16",
                                                     "uint16", "int32",  "uint32",  "int64", "uint64"};
  const std::string kind = dataset.find_text_attribute("MATLAB_class").value_or("double");
  if (std::find(numbers.begin(), numbers.end(), kind) != numbers.end()) return;
  core::fail_usage({.what = fmt::format("a MATLAB array of {}", core::printable(kind)),
                    .where = place,
                    .expected = "numbers, classes as 0, 1, 2, ...",
                    .fix = "convert it in MATLAB: [names, ~, y] = unique(y); y = uint16(y - 1)"});
}

MatlabPair match_matlab(const io::Dimensions& x, const io::Dimensions& y) {
  constexpr std::array order{SamplesAlong::last, SamplesAlong::first};
  std::array<SamplesAlong, 2> of_x_order = order;
  if (x.size() > 2) std::reverse(of_x_order.begin(), of_x_order.end());
  for (const std::uint64_t least : {2, 1})
    for (const SamplesAlong of_x : of_x_order)
      for (const SamplesAlong of_y : order)
        if (samples_along(x, of_x) == samples_along(y, of_y) && samples_along(x, of_x) >= least) return {of_x, of_y};
  return {};
}

io::Dimensions matlab_dimensions(const io::Dimensions& in_file, SamplesAlong along, bool is_label) {
  io::Dimensions turned = in_file;
  std::reverse(along == SamplesAlong::last || turned.empty() ? turned.begin() : turned.begin() + 1, turned.end());
  if (is_label && !turned.empty()) turned.erase(std::remove(turned.begin() + 1, turned.end(), 1), turned.end());
  return turned;
}

std::string describe_matlab(const std::string& name, const io::Dimensions& in_file, const io::Dimensions& as_read) {
  io::Dimensions shown = in_file;
  std::reverse(shown.begin(), shown.end());
  return fmt::format("{}: {} in MATLAB, transposed and read as {} samples of [{}]", name, fmt::join(shown, " x "),
                     as_read.front(), fmt::join(as_read.begin() + 1, as_read.end(), ", "));
}

void read_matlab(const io::Hdf5Dataset& dataset, SamplesAlong along, std::uint64_t first, std::uint64_t n,
                 std::span<std::byte> data) {
  const std::size_t element = core::size_of(*dataset.dtype());
  std::vector<std::byte> in(data.size());
  io::Dimensions dimensions = dataset.dimensions();
  if (along == SamplesAlong::last) {
    dataset.read_columns(first, n, in);
    dimensions.back() = n;
    return turn_round(in, dimensions, element, data);
  }
  dataset.read_rows(first, n, in);
  dimensions.erase(dimensions.begin());
  const std::size_t sample = data.size() / n;
  for (std::size_t at = 0; at < data.size(); at += sample)
    turn_round(std::span{in}.subspan(at, sample), dimensions, element, data.subspan(at, sample));
}

}  // namespace lockstep::data
