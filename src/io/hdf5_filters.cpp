// Our codecs as filters of the HDF5 library, so that it reads and writes zstd and lz4 without plugins. The library's
// files and ours have the same bytes, because both call io/codecs.
#include <hdf5.h>

#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "io/codec.hpp"
#include "io/codecs.hpp"
#include "io/hdf5_library.hpp"

namespace lockstep::io {
namespace {

struct Zstd {
  static constexpr auto pack = &pack_zstd;
  static constexpr auto unpack = &unpack_zstd;
  static constexpr auto unpacked_size = &unpacked_size_zstd;
};

struct Lz4 {
  static constexpr auto pack = &pack_lz4;
  static constexpr auto unpack = &unpack_lz4;
  static constexpr auto unpacked_size = &unpacked_size_lz4;
};

/// Gives the library a new buffer in place of its own; returns 0 if there is no memory.
std::size_t replace(std::size_t* buffer_bytes, void** buffer, void* content, std::size_t bytes) {
  if (content == nullptr) return 0;
  H5free_memory(*buffer);
  *buffer = content;
  *buffer_bytes = bytes;
  return bytes;
}

template <class Codec>
std::size_t decompress(std::span<const std::byte> packed, std::size_t* buffer_bytes, void** buffer) {
  const std::optional<std::size_t> size = Codec::unpacked_size(packed);
  if (!size || *size == 0) return 0;
  void* const content = H5allocate_memory(*size, false);
  if (content == nullptr) return 0;
  if (!Codec::unpack(packed, {static_cast<std::byte*>(content), *size})) {
    H5free_memory(content);
    return 0;
  }
  return replace(buffer_bytes, buffer, content, *size);
}

template <class Codec>
std::size_t compress(std::span<const std::byte> data, std::size_t* buffer_bytes, void** buffer) {
  const std::vector<std::byte> packed = Codec::pack(0, data);
  void* const content = H5allocate_memory(packed.size(), false);
  if (content != nullptr) std::memcpy(content, packed.data(), packed.size());
  return replace(buffer_bytes, buffer, content, packed.size());
}

/// H5Z_func_t: 0 means failure. No exception may pass through the library.
template <class Codec>
std::size_t filter(unsigned flags, std::size_t, const unsigned*, std::size_t bytes, std::size_t* buffer_bytes,
                   void** buffer) {
  try {
    const std::span<const std::byte> input{static_cast<const std::byte*>(*buffer), bytes};
    return (flags & H5Z_FLAG_REVERSE) != 0 ? decompress<Codec>(input, buffer_bytes, buffer)
                                           : compress<Codec>(input, buffer_bytes, buffer);
  } catch (const std::exception&) {
    return 0;
  }
}

void register_filter(int id, const char* name, H5Z_func_t function) {
  H5Z_class2_t description{};
  description.version = H5Z_CLASS_T_VERS;
  description.id = id;
  description.encoder_present = 1;
  description.decoder_present = 1;
  description.name = name;
  description.filter = function;
  if (H5Zregister(&description) < 0) core::fail_system(std::string{"HDF5 does not accept a filter: "} + name);
}

}  // namespace

void register_filters() {
  register_filter(zstd_id, "zstd", &filter<Zstd>);
  register_filter(lz4_id, "lz4", &filter<Lz4>);
}

}  // namespace lockstep::io
