// Preloaded into a rank: simulates a faulty node. BAD_NODE lists the faults, separated by spaces: `clock`, which is an
// hour ahead; `names`, a name service that does not answer; `files`, file systems that do not answer.
#include <dlfcn.h>
#include <netdb.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

bool is_bad(const char* what) {
  const char* const all = std::getenv("BAD_NODE");
  return all != nullptr && std::strstr(all, what) != nullptr;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/// MPI queries in the main thread.
bool is_helper() { return gettid() != getpid(); }

[[noreturn]] void hang() {
  for (;;) pause();
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto real = next<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME && is_bad("clock")) time->tv_sec += 3600;
  return result;
}

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found) {
  static const auto real = next<int (*)(const char*, const char*, const addrinfo*, addrinfo**)>("getaddrinfo");
  if (is_bad("names") && is_helper()) hang();
  return real(node, service, hints, found);
}

extern "C" int statfs(const char* path, struct statfs* status) noexcept {
  static const auto real = next<int (*)(const char*, struct statfs*)>("statfs");
  if (is_bad("files")) hang();
  return real(path, status);
}
