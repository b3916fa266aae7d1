#include "runtime/watch/mpi_segment.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

namespace lockstep::runtime {

/// Open MPI 4 names it vader_segment.HOST.USER.JOB.LOCAL_RANK; Open MPI 5 begins with sm_segment.
MpiSegment find_mpi_segment(int local_rank) {
  constexpr std::array<std::string_view, 2> begins{"/dev/shm/vader_segment.", "/dev/shm/sm_segment."};
  const std::string end = fmt::format(".{}", local_rank);
  MpiSegment segment;
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);) {
    const std::string path = line.substr(std::min(line.find('/'), line.size()));
    const bool is_one =
        std::ranges::any_of(begins, [&path](std::string_view begin) { return path.starts_with(begin); });
    struct stat status {};
    if (!is_one || !path.ends_with(end) || path.size() >= segment.path.size() || stat(path.c_str(), &status) != 0)
      continue;
    std::ranges::copy(path, segment.path.begin());
    segment.device = status.st_dev;
    segment.inode = status.st_ino;
    break;
  }
  return segment;
}

void remove_if_left(const MpiSegment& segment) noexcept {
  struct stat status {};
  if (segment.path.front() == '\0' || lstat(segment.path.data(), &status) != 0) return;
  if (S_ISREG(status.st_mode) && status.st_dev == segment.device && status.st_ino == segment.inode)
    ::unlink(segment.path.data());
}

}  // namespace lockstep::runtime
