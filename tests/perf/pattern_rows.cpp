#include "kernel_rows.hpp"
#include "runtime/kernel/pattern.hpp"

namespace lockstep::perf {

using namespace runtime::kernel;  // NOLINT(google-build-using-namespace)
using runtime::DeviceSpan;

// Without conclude(), which reads hardly any of the bytes that it may read.
std::vector<KernelRow> pattern_rows(KernelArrays& arrays, std::size_t n) {
  constexpr std::size_t tile_bytes = 16381 * sizeof(float);  // as reduce_all's: a prime number of elements
  const std::size_t n_bytes = n * sizeof(float), n_partials = n_partial_differences(n_bytes);
  auto* const data = arrays.make<std::byte>(n_bytes);
  std::vector<std::byte> packed(packed_bytes(tile_bytes, n_bytes));
  pack(std::vector<std::byte>(tile_bytes), data, packed);
  const auto to = DeviceSpan<std::byte>::at(data, n_bytes);
  const Comparison comparison{
      .packed = DeviceSpan<const std::byte>::at(arrays.make(packed), packed.size()),
      .found = to,
      .element_size = sizeof(float),
      .partials = DeviceSpan<PartialDifference>::at(arrays.make<PartialDifference>(n_partials), n_partials)};
  return {{"repeat", n_bytes + packed.size(),
           [=, tile = comparison.packed](runtime::Stream& stream) { repeat(stream, tile, to); }},
          {"repeat_one", n_bytes,
           [=](runtime::Stream& stream) { repeat(stream, std::array<std::byte, bytes_of_pack>{}, to); }},
          {"compare", n_bytes + packed.size() + n_partials * sizeof(PartialDifference),
           [=](runtime::Stream& stream) { compare(stream, comparison); }}};
}

}  // namespace lockstep::perf
