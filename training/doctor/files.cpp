#include "training/doctor/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/timer.hpp"
#include "data/format/manifest.hpp"
#include "data/read/shard_reader.hpp"
#include "io/file.hpp"
#include "training/doctor/system.hpp"

namespace lockstep::training::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t piece_bytes = std::uint64_t{4} << 20;  // the size of a default chunk
constexpr std::size_t probe_bytes = std::size_t{1} << 20;

std::string file_system_of(const std::string& path) {
  struct statfs status {};
  return statfs(path.c_str(), &status) == 0 ? name_file_system(status.f_type) : "";
}

/// Checks as many shards as there is time for.
void require_whole(const std::string& folder, const data::Manifest& manifest, SetFacts& facts) {
  const core::Stopwatch watch;
  for (const data::ManifestFile& entry : manifest.files()) {
    if (watch.elapsed() > reading) return;
    const io::File file{(fs::path{folder} / entry.file).string()};
    if (const auto wrong = data::examine_size(file, entry.bytes))
      core::fail_usage({.what = fmt::format("'{}': {}", file.path(), *wrong),
                        .fix = "lockstep shard verify names all damage; make the set again, or copy it again"});
    ++facts.n_looked;
  }
}

/// Whether the first byte of a piece is already in memory; nothing if the file system does not report it.
std::optional<bool> is_cached(int file, std::uint64_t at) {
  char byte = 0;
  iovec to{.iov_base = &byte, .iov_len = 1};
  if (preadv2(file, &to, 1, static_cast<off_t>(at), RWF_NOWAIT) >= 0) return true;
  return errno == EAGAIN ? std::optional{false} : std::nullopt;
}

/// Pieces that were checked before they were read.
struct Looked {
  std::uint64_t n = 0;
  std::uint64_t n_cached = 0;
  bool is_told = true;
};

void look(int file, std::uint64_t bytes, Looked& looked) {
  for (std::uint64_t at = 0; at < bytes; at += piece_bytes) {
    const std::optional<bool> cached = is_cached(file, at);
    looked.is_told = looked.is_told && cached.has_value();
    looked.n_cached += cached.value_or(false) ? 1 : 0;
    ++looked.n;
  }
}

/// Adds the time to read one shard; returns false once there is enough.
bool read_shard(const std::string& path, std::vector<std::byte>& buffer, Looked& looked, SetFacts& facts) {
  const io::File file{path};
  file.drop_cache();
  const core::Descriptor probe{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  const std::uint64_t bytes = std::min(file.size().value, most_read.value - facts.n_read);
  look(probe.get(), bytes, looked);
  const core::Stopwatch watch;
  const double before = facts.seconds;
  for (std::uint64_t at = 0; at < bytes && facts.seconds < reading.value; at += piece_bytes) {
    const auto piece = std::span{buffer}.first(std::min(piece_bytes, bytes - at));
    file.read_at(at, piece);
    facts.n_read += piece.size();
    facts.seconds = before + watch.elapsed().value;
  }
  return facts.n_read < most_read.value && facts.seconds < reading.value;
}

/// `folder`, or its nearest existing parent.
fs::path nearest(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder, error);
  while (path.has_relative_path() && !fs::exists(path, error) && !error) path = path.parent_path();
  return path;
}

/// The outcome of a call that returns 0 on success.
std::string outcome_of(int result) {
  return result == 0 ? "works" : fmt::format("fails ({})", core::system_reason(errno));
}

std::string lock_with_flock(int file) { return outcome_of(flock(file, LOCK_EX | LOCK_NB)); }

std::string lock_with_fcntl(int file) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return outcome_of(fcntl(file, F_SETLK, &whole));
}

/// Returns nothing if a file of some size reaches the disk; also detects quotas.
std::string write_probe(int file) {
  const std::vector<std::byte> content(probe_bytes, std::byte{1});
  std::size_t n_written = 0;
  while (n_written < content.size()) {
    const ssize_t n = write(file, content.data() + n_written, content.size() - n_written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return core::system_reason(errno);
    n_written += static_cast<std::size_t>(n);
  }
  return fsync(file) == 0 ? "" : core::system_reason(errno);
}

bool is_in_home(const fs::path& path) {
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home == '\0' || fs::path{home} == "/") return false;
  std::error_code error;
  const std::string relative = fs::proximate(path, home, error).string();
  return !error && relative != ".." && !relative.starts_with("../") && !fs::path{relative}.is_absolute();
}

void try_file(FolderFacts& facts) {
  std::string path = (fs::path{facts.path} / ".lockstep-doctor-XXXXXX").string();
  const core::Descriptor file{mkostemp(path.data(), O_CLOEXEC)};
  if (!file) {
    facts.complaint = core::system_reason(errno);
    return;
  }
  facts.flock = lock_with_flock(file.get());
  facts.fcntl = lock_with_fcntl(file.get());
  facts.complaint = write_probe(file.get());
  unlink(path.c_str());
}

}  // namespace

SetFacts open_set(const std::string& folder, bool looks_at_shards) {
  SetFacts facts{.file_system = file_system_of(folder)};
  const auto complaint = core::complaint_of([&] {
    const data::Manifest manifest = data::read_manifest(folder);
    facts.x = manifest.spec.is_encoded() ? "image files" : data::describe(manifest.spec.x);
    facts.classes = manifest.spec.classes;
    facts.n_files = manifest.files().size();
    for (const data::Split& split : manifest.splits) facts.n_samples += split.n_samples;
    if (looks_at_shards) require_whole(folder, manifest, facts);
  });
  if (!complaint) return facts;
  const core::Problem& problem = complaint->problem();
  facts.complaint = problem.what;
  facts.fix = problem.fix;
  return facts;
}

SetFacts read_sample(const std::string& folder, std::uint64_t first) {
  SetFacts facts;
  const auto complaint = core::complaint_of([&] {
    const data::Manifest manifest = data::read_manifest(folder);
    const std::vector<data::ShardEntry>& shards = manifest.split("", folder).shards;
    std::vector<std::byte> buffer(piece_bytes);
    Looked looked;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const data::ShardEntry& shard = shards[(first + i) % shards.size()];
      if (!read_shard((fs::path{folder} / shard.file).string(), buffer, looked, facts)) break;
    }
    if (looked.is_told && looked.n > 0)
      facts.cached_percent = 100 * static_cast<double>(looked.n_cached) / static_cast<double>(looked.n);
  });
  if (complaint) facts.unread = complaint->problem().what;
  return facts;
}

FolderFacts use_folder(const std::string& folder) {
  const fs::path path = nearest(folder);
  FolderFacts facts{.path = path.string(), .is_in_home = is_in_home(path)};
  struct statfs status {};
  if (statfs(facts.path.c_str(), &status) == 0) {
    const auto unit = static_cast<std::uint64_t>(status.f_frsize);
    facts.file_system = name_file_system(status.f_type);
    facts.is_network = is_network_file_system(status.f_type);
    facts.size = status.f_blocks * unit;
    facts.free = (geteuid() == 0 ? status.f_bfree : status.f_bavail) * unit;
  }
  std::error_code error;
  if (!fs::is_directory(path, error))
    facts.complaint = "it is not a folder";
  else
    try_file(facts);
  return facts;
}

TemporaryFacts use_temporary_folder() {
  const char* const named = std::getenv("TMPDIR");
  const std::string folder = named != nullptr && *named != '\0' ? named : "/tmp";
  const FolderFacts facts = use_folder(folder);
  std::error_code error;
  return {.complaint = facts.complaint.empty() ? "" : fmt::format("'{}': {}", facts.path, facts.complaint),
          .missing = fs::exists(folder, error) ? "" : folder};
}

}  // namespace lockstep::training::doctor
