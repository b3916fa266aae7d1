// The parser of a shard's index: any bytes, and any under a right check sum, are an index or an Error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "data/format/little_endian.hpp"
#include "data/format/shard_index.hpp"

namespace {

using lockstep::data::append_little_endian;

// What is accepted is written again as it was.
void parse(const std::vector<std::byte>& bytes) {
  constexpr std::uint64_t file_bytes = std::uint64_t{1} << 30;
  try {
    if (serialize(lockstep::data::parse_shard_index(bytes, file_bytes, "fuzz")) != bytes) std::abort();
  } catch (const lockstep::core::Error&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span{data, size});
  std::vector<std::byte> bytes{input.begin(), input.end()};
  parse(bytes);
  bytes.erase(bytes.end() - static_cast<std::ptrdiff_t>(std::min(bytes.size(), sizeof(std::uint32_t))), bytes.end());
  append_little_endian(bytes, lockstep::core::crc32c(bytes));
  parse(bytes);
  return 0;
}
