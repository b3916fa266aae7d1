// Preloaded into a program: fsync of files whose names begin with `rank-` takes SLOW_DISK_MS longer, and fails with EIO
// SLOW_DISK_FAILS times in each process: as on a disk that is slow, or lost for a while.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace {

bool is_of_a_rank(int file) {
  std::array<char, 4096> path{};
  const auto n = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path.data(), path.size());
  return n > 0 && std::string_view{path.data(), static_cast<std::size_t>(n)}.find("/rank-") != std::string_view::npos;
}

}  // namespace

extern "C" int fsync(int file) {
  if (is_of_a_rank(file)) {
    if (const char* const delay = std::getenv("SLOW_DISK_MS"))
      std::this_thread::sleep_for(std::chrono::milliseconds{std::atoi(delay)});
    static std::atomic<int> n_failed{0};
    const char* const most = std::getenv("SLOW_DISK_FAILS");
    if (most != nullptr && n_failed++ < std::atoi(most)) {
      errno = EIO;
      return -1;
    }
  }
  using Fsync = int (*)(int);
  static const auto next = reinterpret_cast<Fsync>(dlsym(RTLD_NEXT, "fsync"));
  return next(file);
}
