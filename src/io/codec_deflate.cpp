#include <zlib.h>

#include <limits>

#include "core/error.hpp"
#include "io/codecs.hpp"

namespace lockstep::io {
namespace {

/// zlib counts bytes in 32 bits; chunks of HDF5 are smaller than 4 GiB, so this is no restriction.
bool fits(std::size_t bytes) noexcept { return bytes <= std::numeric_limits<uInt>::max(); }

}  // namespace

std::vector<std::byte> pack_deflate(int level, std::span<const std::byte> data) {
  core::require(fits(data.size()), "a chunk is smaller than 4 GiB");
  std::vector<std::byte> packed(compressBound(data.size()));
  uLongf n_packed = packed.size();
  const int result =
      compress2(reinterpret_cast<Bytef*>(packed.data()), &n_packed, reinterpret_cast<const Bytef*>(data.data()),
                data.size(), level == 0 ? Z_DEFAULT_COMPRESSION : level);
  if (result != Z_OK) core::fail_system(std::string{"zlib cannot compress: "} + zError(result));
  packed.resize(n_packed);
  return packed;
}

bool unpack_deflate(std::span<const std::byte> packed, std::span<std::byte> data) {
  if (!fits(packed.size()) || !fits(data.size())) return false;
  uLongf n_data = data.size();
  uLong n_used = packed.size();
  const int result = uncompress2(reinterpret_cast<Bytef*>(data.data()), &n_data,
                                 reinterpret_cast<const Bytef*>(packed.data()), &n_used);
  return result == Z_OK && n_data == data.size() && n_used == packed.size();
}

}  // namespace lockstep::io
