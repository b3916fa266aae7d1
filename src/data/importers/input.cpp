#include "data/importers/input.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "data/format/known_formats.hpp"
#include "runtime/interrupt.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t inflated_together = std::size_t{1} << 18;

bool is_gzip(const io::File& file) {
  std::array<std::byte, 2> magic{};
  if (file.size().value < magic.size()) return false;
  file.read_at(0, magic);
  return magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
}

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(io::File file) : file_{std::move(file)}, size_{file_.size().value} {}

  std::size_t read(std::span<std::byte> data) override {
    if (runtime::pending_interrupt() != 0) throw Interrupted{};
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(data.size(), size_ - position_));
    file_.read_at(position_, data.first(n));
    position_ += n;
    return n;
  }

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }

 private:
  io::File file_;
  std::uint64_t size_;
  std::uint64_t position_ = 0;
};

/// One gzip member after another (RFC 1952); anything else behind a member is damage.
class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(io::File file) : stored_{std::move(file)}, buffer_(inflated_together) {
    constexpr int gzip_only = 16;
    if (inflateInit2(&zlib_, MAX_WBITS + gzip_only) != Z_OK) core::fail_system("cannot start zlib");
  }
  ~GzipStream() override { inflateEnd(&zlib_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::size_t read(std::span<std::byte> data) override {
    std::size_t n = 0;
    while (n < data.size() && prepare()) n += inflate_some(data.subspan(n));
    return n;
  }

 private:
  /// Provides stored data of an open member; false at the end of the file.
  bool prepare() {
    if (zlib_.avail_in == 0) {
      zlib_.avail_in = static_cast<uInt>(stored_.read(buffer_));
      zlib_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    }
    if (zlib_.avail_in == 0) {
      if (is_member_open_) fail("ends before its content does");
      return false;
    }
    if (!is_member_open_) inflateReset(&zlib_);
    is_member_open_ = true;
    return true;
  }

  std::size_t inflate_some(std::span<std::byte> data) {
    const auto room = static_cast<uInt>(std::min<std::size_t>(data.size(), std::numeric_limits<uInt>::max()));
    zlib_.next_out = reinterpret_cast<Bytef*>(data.data());
    zlib_.avail_out = room;
    const int result = ::inflate(&zlib_, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
      is_member_open_ = false;
    else if (result != Z_OK)
      fail(fmt::format("is damaged: {}", zlib_.msg != nullptr ? zlib_.msg : "no progress"));
    return room - zlib_.avail_out;
  }

  [[noreturn]] void fail(const std::string& defect) const {
    core::fail_usage({.what = fmt::format("the gzip file {}", defect),
                      .where = fmt::format("{}, byte {}", stored_.path(), stored_.position() - zlib_.avail_in),
                      .expected = "complete gzip data",
                      .fix = "fetch the file again; `gzip -t` checks it"});
  }

  PlainStream stored_;
  std::vector<std::byte> buffer_;
  z_stream zlib_{};
  bool is_member_open_ = true;
};

std::unique_ptr<ByteStream> open_stream(io::File file) {
  if (is_gzip(file)) return std::make_unique<GzipStream>(std::move(file));
  return std::make_unique<PlainStream>(std::move(file));
}

Spool unpack(ByteStream& stream) {
  SpoolWriter spool;
  std::vector<std::byte> piece(inflated_together);
  for (std::size_t n = 0; (n = stream.read(piece)) > 0;) spool.append(std::span{piece}.first(n));
  return std::move(spool).finish();
}

std::variant<io::File, Spool> open_bytes(const std::string& path, SharedSpools* spools) {
  io::File file{path};
  if (!is_gzip(file)) return file;
  return std::move(take_spools(spools, 1, [&] { return make_spools(unpack(*open_stream(std::move(file)))); }).front());
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::status(path, ignored).type() != std::filesystem::file_type::not_found;
}

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return is_there(path) && !std::filesystem::is_directory(path, ignored);
}

void refuse_other_format(std::span<const std::byte> head, const std::string& where, const std::string& expected) {
  const auto format = recognise_format(head);
  if (format)
    core::fail_usage({.what = fmt::format("this is {}", format->name),
                      .where = where,
                      .expected = expected,
                      .fix = std::string{format->remedy}});
}

void refuse_other_format(const std::string& path, const std::string& expected) {
  const io::File file{path};
  std::vector<std::byte> head(std::min<std::uint64_t>(file.size().value, known_format_bytes));
  file.read_at(0, head);
  refuse_other_format(head, path, expected);
}

std::unique_ptr<ByteStream> open_stream(const std::string& path) { return open_stream(io::File{path}); }

Input::Input(const std::string& path, SharedSpools* spools) : name_{path}, bytes_{open_bytes(path, spools)}, size_{0} {
  const auto* file = std::get_if<io::File>(&bytes_);
  size_ = file != nullptr ? file->size().value : spool_size();
}

void Input::read_at(std::uint64_t offset, std::span<std::byte> data) const {
  if (offset > size_ || data.size() > size_ - offset) {
    core::fail_usage({.what = fmt::format("the content ends after {} bytes", size_),
                      .where = name_,
                      .expected = fmt::format("{} bytes from byte {} on", data.size(), offset),
                      .fix = "fetch or write the file again: it is truncated"});
  }
  std::visit([&](const auto& bytes) { bytes.read_at(offset, data); }, bytes_);
}

}  // namespace lockstep::data
