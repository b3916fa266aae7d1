#include "reduce_all/checker.hpp"

#include <algorithm>
#include <array>

namespace lockstep::reduce_all {

namespace kernel = runtime::kernel;

namespace {

// The period is a number of elements that fills whole packs for any type.
std::size_t tile_bytes(core::Bytes largest) {
  return kernel::packed_bytes(TestData::period * kernel::bytes_of_pack, largest.value);
}

std::size_t partials_bytes(core::Bytes largest) {
  return kernel::n_partial_differences(largest.value) * sizeof(kernel::PartialDifference);
}

}  // namespace

core::Bytes Checker::footprint(core::Bytes largest) {
  return {tile_bytes(largest) + partials_bytes(largest) + sizeof(kernel::Difference)};
}

Checker::Checker(const comm::Call& call) : element_size_{call.element_size()} {
  if (is_on_host_) return;
  const core::Bytes of_tile{tile_bytes(call.bytes())}, of_result{sizeof(kernel::Difference)};
  tile_ = runtime::Buffer{of_tile, runtime::Memory::device};
  partials_ = runtime::Buffer{{partials_bytes(call.bytes())}, runtime::Memory::device};
  result_ = runtime::Buffer{of_result, runtime::Memory::device};
  tile_here_ = runtime::Buffer{of_tile, runtime::Memory::pinned};
  result_here_ = runtime::Buffer{of_result, runtime::Memory::pinned};
}

void Checker::fill(runtime::DeviceSpan<std::byte> input, const TestData& data) {
  if (is_on_host_) return data.fill(runtime::on_host(input));
  if (data.input().empty()) return;
  kernel::repeat(stream_, send(data.input(), input), input);
  stream_.wait();
}

void Checker::poison(runtime::DeviceSpan<std::byte> output, const TestData& data) {
  if (is_on_host_) return data.poison(runtime::on_host(output));
  alignas(kernel::bytes_of_pack) std::array<std::byte, kernel::bytes_of_pack> values{};
  data.poison(values);
  kernel::repeat(stream_, values, output);
  stream_.wait();
}

Mismatch Checker::check(runtime::DeviceSpan<const std::byte> output, const TestData& data) {
  if (is_on_host_) return data.check(runtime::on_host(output));
  return data.check_by(output.size(), [&](const core::Slice& part, std::span<const std::byte> tile) {
    return compare(output.subspan(part.offset, part.count), tile);
  });
}

void Checker::flip_bit(runtime::DeviceSpan<std::byte> output, std::size_t at) {
  if (is_on_host_) {
    runtime::on_host(output)[at] ^= std::byte{1};
    return;
  }
  kernel::flip_bit(stream_, output, at);
  stream_.wait();
}

// Data sent earlier have been read, because all members wait.
runtime::DeviceSpan<const std::byte> Checker::send(std::span<const std::byte> tile,
                                                   runtime::DeviceSpan<const std::byte> where) {
  const std::size_t n_bytes = kernel::packed_bytes(tile.size(), where.size());
  const std::span<std::byte> here = tile_here_.bytes().first(n_bytes);
  kernel::pack(tile, where.data(), here);
  const runtime::DeviceSpan<std::byte> there = tile_.on_device<std::byte>().subspan(0, n_bytes);
  stream_.copy(there, here);
  return there;
}

Mismatch Checker::compare(runtime::DeviceSpan<const std::byte> found, std::span<const std::byte> tile) {
  if (found.size() == 0) return {};
  const auto n_partials = kernel::n_partial_differences(found.size());
  const kernel::Comparison comparison{
      .packed = send(tile, found),
      .found = found,
      .element_size = element_size_,
      .partials = partials_.on_device<kernel::PartialDifference>().subspan(0, n_partials)};
  kernel::compare(stream_, comparison);
  kernel::conclude(stream_, comparison, result_.on_device<kernel::Difference>());
  stream_.copy(result_here_.bytes(), result_.on_device<std::byte>());
  stream_.wait();
  const kernel::Difference& difference = result_here_.as<kernel::Difference>()[0];
  return {difference.n_wrong, difference.index, difference.expected, difference.found};
}

}  // namespace lockstep::reduce_all
