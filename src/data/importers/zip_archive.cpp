#include "data/importers/zip_archive.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <span>

#include "core/error.hpp"
#include "data/importers/npy_header.hpp"
#include "runtime/interrupt.hpp"

namespace lockstep::data {
namespace {

constexpr std::uint64_t unpacked_together = std::uint64_t{1} << 18;

[[noreturn]] void fail_to_unpack(const std::string& what, const std::string& where) {
  core::fail_usage({.what = what,
                    .where = where,
                    .expected = "a complete zip archive, as numpy.savez writes",
                    .fix = "copy or write it again"});
}

/// What is not a zip archive, or lacks the list of members at its end.
void refuse_unlike_zip(const std::string& path, bool lacks_list) {
  const io::File file{path};
  std::string head(std::min<std::uint64_t>(file.size().value, npy_magic.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span{head}));
  if (head == npy_magic)
    core::fail_usage({.what = "this is one NumPy array (.npy)",
                      .where = path,
                      .expected = "a zip archive, as numpy.savez writes",
                      .fix = "rename the file, so that it ends in .npy"});
  if (head.starts_with("PK") && lacks_list)
    fail_to_unpack("a truncated zip archive: the list of its members, at the end, is missing", path);
  if (head.empty()) fail_to_unpack("an empty file, not a zip archive", path);
  if (!head.starts_with("PK")) refuse_other_format(path, "a zip archive, as numpy.savez writes");
}

struct MemberPolicy {
  using Raw = zip_file_t*;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { zip_fclose(raw); }
};

}  // namespace

void ZipArchive::Policy::destroy(Raw raw) noexcept { zip_discard(raw); }

ZipArchive::ZipArchive(const std::string& path) : path_{path} {
  int code = 0;
  archive_ = core::UniqueHandle<Policy>{zip_open(path.c_str(), ZIP_RDONLY, &code)};
  if (archive_) return;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (is_file(path)) refuse_unlike_zip(path, code == ZIP_ER_NOZIP);
  fail_to_unpack(fmt::format("cannot be opened as a zip archive: {}", reason), path);
}

std::vector<std::string> ZipArchive::member_names() const {
  std::vector<std::string> names;
  const zip_int64_t n = zip_get_num_entries(archive_.get(), 0);
  for (zip_int64_t i = 0; i < n; ++i) {
    const char* name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), 0);
    if (name != nullptr) names.emplace_back(name);
  }
  return names;
}

std::uint64_t ZipArchive::member_bytes(const std::string& member) const {
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat(archive_.get(), member.c_str(), 0, &stat) != 0 || (stat.valid & ZIP_STAT_SIZE) == 0)
    fail_to_unpack("has no size", place(member));
  return stat.size;
}

Input ZipArchive::head(const std::string& member, std::uint64_t most) const {
  return Input{place(member), spool(member, most)};
}

Input ZipArchive::unpack(const std::string& member, SharedSpools* spools) const {
  // One byte more than the archive claims: so what claims too little is seen, however much there is.
  const std::uint64_t claimed = member_bytes(member);
  const auto make = [&] { return make_spools(spool(member, claimed + (claimed + 1 == 0 ? 0 : 1))); };
  return Input{place(member), std::move(take_spools(spools, 1, make).front())};
}

std::string ZipArchive::place(const std::string& member) const { return fmt::format("{}, member {}", path_, member); }

Spool ZipArchive::spool(const std::string& member, std::uint64_t most) const {
  const core::UniqueHandle<MemberPolicy> file{zip_fopen(archive_.get(), member.c_str(), 0)};
  if (!file) fail_to_unpack(fmt::format("cannot be unpacked: {}", zip_strerror(archive_.get())), place(member));
  SpoolWriter spool;
  std::vector<std::byte> piece(std::min<std::uint64_t>(most, unpacked_together));
  for (;;) {
    if (runtime::pending_interrupt() != 0) throw Interrupted{};
    const zip_int64_t n = zip_fread(file.get(), piece.data(), std::min<std::uint64_t>(most, piece.size()));
    if (n < 0) fail_to_unpack(fmt::format("is damaged: {}", zip_file_strerror(file.get())), place(member));
    if (n == 0) return std::move(spool).finish();
    spool.append(std::span{piece}.first(static_cast<std::size_t>(n)));
    most -= static_cast<std::uint64_t>(n);
  }
}

}  // namespace lockstep::data
