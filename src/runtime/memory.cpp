#include "runtime/memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

/// Returns the number after `key` in a file of lines "key number ...".
std::optional<std::uint64_t> read_number(const fs::path& path, std::string_view key) {
  std::ifstream file{path};
  std::string word, rest;
  while (file >> word) {
    std::uint64_t value = 0;
    if (word == key && file >> value) return value;
    file.clear();
    std::getline(file, rest);
  }
  return std::nullopt;
}

/// Reads a file with one number; returns nothing if it is absent or says "max".
std::optional<std::uint64_t> read_number(const fs::path& path) {
  std::ifstream file{path};
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// Returns the minimum from `group` up to the root of the hierarchy mounted at `mount`. A container may see a path in
/// /proc/self/cgroup that does not exist below its mount; its own limit is then at the root.
std::uint64_t least_left(const fs::path& mount, fs::path group) {
  std::uint64_t least = unlimited;
  for (;; group = group.parent_path()) {
    least = std::min(least, left_in_cgroup(mount / group.relative_path()).value_or(unlimited));
    if (!group.has_relative_path()) return least;
  }
}

/// Returns what this process's control group may still use, version 1 or 2; the largest number if there is no limit.
std::uint64_t left_in_own_cgroup() {
  std::uint64_t least = unlimited;
  std::ifstream file{"/proc/self/cgroup"};
  for (std::string line; std::getline(file, line);) {  // id:controllers:/path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty())
      least = std::min(least, least_left("/sys/fs/cgroup", group));
    else if (("," + controllers + ",").find(",memory,") != std::string::npos)
      least = std::min(least, least_left("/sys/fs/cgroup/memory", group));
  }
  return least;
}

/// `key` names the number in /proc/self/status that counts against the limit, in KiB.
std::uint64_t left_of_limit(decltype(RLIMIT_AS) resource, std::string_view key) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  const std::uint64_t used = read_number("/proc/self/status", key).value_or(0) * 1024;
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

}  // namespace

std::optional<std::uint64_t> left_in_cgroup(const fs::path& folder) {
  const bool is_first_version = fs::exists(folder / "memory.limit_in_bytes");
  const auto limit = read_number(folder / (is_first_version ? "memory.limit_in_bytes" : "memory.max"));
  if (!limit) return std::nullopt;
  const std::uint64_t used =
      read_number(folder / (is_first_version ? "memory.usage_in_bytes" : "memory.current")).value_or(0);
  std::uint64_t droppable = 0;  // pages of files, and the kernel's records of them
  for (const char* const key : {"active_file", "inactive_file"})
    droppable += read_number(folder / "memory.stat", (is_first_version ? "total_" : "") + std::string{key}).value_or(0);
  if (!is_first_version) droppable += read_number(folder / "memory.stat", "slab_reclaimable").value_or(0);
  const std::uint64_t held = used - std::min(used, droppable);
  return *limit - std::min(*limit, held);
}

core::Bytes available_memory() {
  const auto kibibytes = read_number("/proc/meminfo", "MemAvailable:");
  return {kibibytes ? std::min(*kibibytes * 1024, left_in_own_cgroup()) : 0};
}

LimitsLeft limits_left() {
  return {.address_space = left_of_limit(RLIMIT_AS, "VmSize:"), .data = left_of_limit(RLIMIT_DATA, "VmData:")};
}

core::Bytes last_level_cache() noexcept {
  const long bytes = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  return {bytes > 0 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{32} << 20};
}

}  // namespace lockstep::runtime
