// The distance of two cores: the round trip of a cache line between them, in ns, as the median of 11 short runs.
// core_distance CPU CPU. On a virtual machine it changes whenever the host moves the cores, and every result with it.
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

constexpr int n_runs = 11;
constexpr int round_trips = 20'000;  // of a run: some 2 ms

struct alignas(128) Line {
  std::atomic<int> value{0};
};

bool bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

void await(const Line& line, int value) {
  while (line.value.load(std::memory_order_acquire) != value) continue;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || !bind_to(std::atoi(argv[1]))) {
    std::fprintf(stderr, "usage: core_distance CPU CPU, two processors this process may use\n");
    return 2;
  }
  Line there, back;
  std::thread echo{[&there, &back, cpu = std::atoi(argv[2])] {
    if (!bind_to(cpu)) std::exit(2);
    for (int i = 1; i <= n_runs * round_trips; ++i) {
      await(there, i);
      back.value.store(i, std::memory_order_release);
    }
  }};
  std::array<double, n_runs> ns{};
  int i = 1;
  for (double& one : ns) {
    const auto start = std::chrono::steady_clock::now();
    for (const int end = i + round_trips; i < end; ++i) {
      there.value.store(i, std::memory_order_release);
      await(back, i);
    }
    one = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / round_trips;
  }
  echo.join();
  std::nth_element(ns.begin(), ns.begin() + n_runs / 2, ns.end());
  std::printf("%.1f\n", ns[n_runs / 2]);
}
