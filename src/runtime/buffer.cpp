#include "runtime/buffer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "core/error.hpp"

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

/// MemAvailable of /proc/meminfo, in bytes.
std::optional<std::uint64_t> read_mem_available() {
  std::ifstream file{"/proc/meminfo"};
  std::string key;
  std::string unit;
  std::uint64_t kibibytes = 0;
  while (file >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes * 1024;
    std::getline(file, unit);
  }
  return std::nullopt;
}

/// A cgroup file with one number; nothing if it is absent or says "max".
std::optional<std::uint64_t> read_limit(const fs::path& path) {
  std::ifstream file{path};
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// The least limit from `group` up to the root of the hierarchy mounted at `mount`. A container may see a path in
/// /proc/self/cgroup that does not exist below its mount; its own limit is then found at the root.
std::uint64_t least_limit(const fs::path& mount, fs::path group, const char* file) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (;; group = group.parent_path()) {
    least = std::min(least, read_limit(mount / group.relative_path() / file).value_or(least));
    if (!group.has_relative_path()) return least;
  }
}

/// Limit of this process's cgroup, version 1 or 2; the largest number if there is none.
std::uint64_t read_cgroup_limit() {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::ifstream file{"/proc/self/cgroup"};
  for (std::string line; std::getline(file, line);) {  // id:controllers:/path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty())
      least = std::min(least, least_limit("/sys/fs/cgroup", group, "memory.max"));
    else if (("," + controllers + ",").find(",memory,") != std::string::npos)
      least = std::min(least, least_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

}  // namespace

HostBuffer::HostBuffer(core::Bytes size) : size_{size.value} {
  if (size_ == 0) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = size_ / page + (size_ % page != 0 ? 1 : 0);
  if (pages <= std::numeric_limits<std::size_t>::max() / page)
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(page, pages * page)));
  if (!data_) core::fail_system(fmt::format("cannot allocate a buffer of {}", core::format_bytes(size)));
  std::memset(data_.get(), 0, size_);
}

void HostBuffer::Free::operator()(std::byte* data) const noexcept { std::free(data); }

core::Bytes last_level_cache() noexcept {
  const long bytes = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  return {bytes > 0 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{32} << 20};
}

core::Bytes available_memory() {
  const std::optional<std::uint64_t> available = read_mem_available();
  return {available ? std::min(*available, read_cgroup_limit()) : 0};
}

}  // namespace lockstep::runtime
