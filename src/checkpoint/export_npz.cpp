// Writes .npz archives: zip with 64-bit sizes (PKWARE's APPNOTE 6.3, sections 4.3 and 4.5.3), nothing compressed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include "checkpoint/export.hpp"
#include "core/pending.hpp"
#include "data/format/little_endian.hpp"

namespace lockstep::checkpoint {
namespace {

using data::append_little_endian;
using ZipBytes = std::vector<std::byte>;

constexpr std::uint32_t in_extra_field = 0xffff'ffff;  ///< stands for a size or place that is there
constexpr std::uint16_t zip_version = 45;              ///< the first with such fields

struct ZipMember {
  std::string name{};
  std::uint64_t place = 0;
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
};

void append_text(ZipBytes& bytes, std::string_view text) {
  const auto raw = std::as_bytes(std::span{text});
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

template <class... Values>
void append_all(ZipBytes& bytes, Values... values) {
  (append_little_endian(bytes, values), ...);
}

/// NumPy's header of a float32 array, padded to a multiple of 64 bytes.
std::string npy_header(const nn::Shape& shape) {
  std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}{}), }}",
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr std::size_t preamble = 10, alignment = 64;
  text.append(alignment - (preamble + text.size() + 1) % alignment, ' ');
  text += '\n';
  std::string header{"\x93NUMPY\x01\x00", 8};
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

/// Appends what the header before a member and its directory entry share: flags (names are UTF-8), no compression, the
/// first day of zip's time (1980-01-01), check sum, sizes, length of the name.
void append_common(ZipBytes& bytes, const ZipMember& member) {
  append_all(bytes, zip_version, std::uint16_t{0x0800}, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0x0021},
             member.crc, in_extra_field, in_extra_field, static_cast<std::uint16_t>(member.name.size()));
}

ZipBytes local_header(const ZipMember& member) {
  ZipBytes bytes;
  append_all(bytes, std::uint32_t{0x0403'4b50});
  append_common(bytes, member);
  append_all(bytes, std::uint16_t{20});
  append_text(bytes, member.name);
  append_all(bytes, std::uint16_t{1}, std::uint16_t{16}, member.bytes, member.bytes);
  return bytes;
}

void append_entry(ZipBytes& bytes, const ZipMember& member) {
  constexpr std::uint16_t made_on_unix = 3 << 8;
  constexpr std::uint32_t readable = 0100644u << 16;
  append_all(bytes, std::uint32_t{0x0201'4b50}, static_cast<std::uint16_t>(made_on_unix | zip_version));
  append_common(bytes, member);
  append_all(bytes, std::uint16_t{28}, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, readable, in_extra_field);
  append_text(bytes, member.name);
  append_all(bytes, std::uint16_t{1}, std::uint16_t{24}, member.bytes, member.bytes, member.place);
}

/// The directory at the end, for members that end at byte `place`.
ZipBytes directory(const std::vector<ZipMember>& members, std::uint64_t place) {
  ZipBytes bytes;
  for (const ZipMember& member : members) append_entry(bytes, member);
  const std::uint64_t n = members.size(), n_bytes = bytes.size();
  append_all(bytes, std::uint32_t{0x0606'4b50}, std::uint64_t{44}, zip_version, zip_version, std::uint32_t{0},
             std::uint32_t{0}, n, n, n_bytes, place);
  append_all(bytes, std::uint32_t{0x0706'4b50}, std::uint32_t{0}, place + n_bytes, std::uint32_t{1});
  append_all(bytes, std::uint32_t{0x0605'4b50}, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0xffff},
             std::uint16_t{0xffff}, in_extra_field, in_extra_field, std::uint16_t{0});
  return bytes;
}

std::uint32_t add_to_crc(std::uint32_t crc, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string member_name(const TensorSpec& tensor, std::string_view flag) {
  constexpr std::size_t longest = 0xffff;
  std::string name = tensor.name + ".npy";
  if (name.size() > longest)
    core::fail_usage({.what = fmt::format("the name of a tensor has {} bytes", tensor.name.size()),
                      .where = std::string{flag},
                      .expected = "a name that fits into a zip archive",
                      .fix = "choose another format"});
  return name;
}

}  // namespace

void save_npz(const std::string& path, const WeightsInfo&, std::span<const TensorSpec> tensors, const FillTensor& fill,
              std::string_view flag) {
  core::PendingFile pending{path, flag};
  std::uint64_t at = 0;
  const auto write = [&](std::span<const std::byte> bytes) {
    pending.write(bytes);
    at += bytes.size();
  };
  std::vector<ZipMember> members;
  std::vector<float> buffer(largest(tensors));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::span<float> values = std::span{buffer}.first(nn::n_elements(tensors[i].shape));
    fill(i, values);
    const std::string header = npy_header(tensors[i].shape);
    const auto header_bytes = std::as_bytes(std::span{header}), data = std::as_bytes(values);
    members.push_back({.name = member_name(tensors[i], flag),
                       .place = at,
                       .bytes = header_bytes.size() + data.size(),
                       .crc = add_to_crc(add_to_crc(0, header_bytes), data)});
    write(local_header(members.back()));
    write(header_bytes);
    write(data);
  }
  pending.write(directory(members, at));
  pending.commit();
}

}  // namespace lockstep::checkpoint
