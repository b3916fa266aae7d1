// How every peer is measured: one common loop, so that the contestants differ in nothing else.
// Invariant: one sample = barrier, then `calls_per_sample` calls back to back; its time is the maximum over the ranks.
// The distance of the ranks' cores is measured before and after each size, because the host of a virtual machine may
// move them.
// Used by plain_allreduce.cpp and gloo_allreduce.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace compare {

/// `--name value` pairs; throws std::invalid_argument when a required one is missing.
class Options {
 public:
  Options(int argc, char** argv) : words_(argv + 1, argv + argc) {}

  [[nodiscard]] std::string get(const std::string& name) const {
    const auto found = std::find(words_.begin(), words_.end(), name);
    if (found == words_.end() || found + 1 == words_.end()) throw std::invalid_argument("missing " + name + " VALUE");
    return *(found + 1);
  }

  [[nodiscard]] std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> sizes;
    std::istringstream list(get("--bytes"));
    for (std::string word; std::getline(list, word, ',');) sizes.push_back(std::stoull(word));
    return sizes;
  }

 private:
  std::vector<std::string> words_;
};

/// Page-aligned memory, first touched by the rank that uses it.
class FloatBuffer {
 public:
  explicit FloatBuffer(std::size_t n_elements) : n_elements_(n_elements) {
    const std::size_t pages = (n_elements * sizeof(float) + page_bytes - 1) / page_bytes;
    data_.reset(static_cast<float*>(std::aligned_alloc(page_bytes, pages * page_bytes)));
    if (!data_) throw std::bad_alloc();
    std::fill_n(data_.get(), n_elements_, 0.0F);
  }

  [[nodiscard]] float* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t n_elements() const noexcept { return n_elements_; }

 private:
  static constexpr std::size_t page_bytes = 4096;
  struct Free {
    void operator()(float* data) const noexcept { std::free(data); }
  };
  std::unique_ptr<float[], Free> data_;
  std::size_t n_elements_;
};

/// Small integers, so that every order of summation gives the same float32. They differ between ranks, and no rank's
/// input equals the sum, so an output that still holds the input is detected.
inline float input_value(int rank, std::size_t i) { return static_cast<float>(static_cast<int>(i % 13) + 1 + rank); }

inline float expected_value(int n_ranks, std::size_t i) {
  return static_cast<float>(n_ranks * static_cast<int>(i % 13 + 1) + n_ranks * (n_ranks - 1) / 2);
}

inline std::size_t count_wrong(const FloatBuffer& output, int n_ranks) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < output.n_elements(); ++i) wrong += output.data()[i] != expected_value(n_ranks, i);
  return wrong;
}

/// Seconds for `n_calls` calls on this rank, started together.
template <class Peer, class Operation>
double time_calls(Peer& peer, Operation& operation, std::size_t n_calls) {
  peer.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t call = 0; call < n_calls; ++call) operation();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Warms up and returns the seconds of one call, the same on all ranks. The first calls, which set up connections, and
/// the first long block do not count.
template <class Peer, class Operation>
double warm_up(Peer& peer, Operation& operation) {
  constexpr double long_enough_s = 2e-3;
  const auto longest_rank = [&](std::size_t n_calls) {
    std::vector<double> elapsed{time_calls(peer, operation, n_calls)};
    peer.max_over_ranks(elapsed);
    return elapsed[0];
  };
  std::size_t n_calls = 4;
  longest_rank(n_calls);
  while (longest_rank(n_calls) < long_enough_s) n_calls *= 2;
  return longest_rank(n_calls) / static_cast<double>(n_calls);
}

/// A word on a line of its own, in memory of all ranks.
struct alignas(128) Line {
  std::atomic<int> value{0};
};

/// ns of a round trip of a cache line between the caller, one of whose ranks leads, and its peer: the median of short
/// runs. Both start with 0 in their own line and leave 0 behind.
inline double round_trip_ns(Line& mine, const Line& other, bool leads) {
  constexpr int n_runs = 11;
  constexpr int n_trips = 1'000;  // of a run
  const auto await = [&other](int value) {
    while (other.value.load(std::memory_order_acquire) != value) continue;
  };
  std::array<double, n_runs> ns{};
  int trip = 0;
  for (double& one : ns) {
    const auto start = std::chrono::steady_clock::now();
    for (const int end = trip + n_trips; trip < end;) {
      ++trip;
      if (!leads) await(trip);
      mine.value.store(trip, std::memory_order_release);
      if (leads) await(trip);
    }
    one = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / n_trips;
  }
  std::nth_element(ns.begin(), ns.begin() + n_runs / 2, ns.end());
  return ns[n_runs / 2];
}

/// One line of JSON: the median over the samples with its 95 % interval from order statistics (normal approximation).
/// Distances are 0 if unknown.
inline void print_row(std::size_t bytes, std::vector<double> samples_us, std::size_t n_calls, std::size_t wrong,
                      double distance_before_ns, double distance_after_ns) {
  std::sort(samples_us.begin(), samples_us.end());
  const auto n = static_cast<double>(samples_us.size());
  const auto at = [&](double position) {
    return samples_us[static_cast<std::size_t>(std::clamp(position, 0.0, n - 1.0))];
  };
  const double half_width = 0.98 * std::sqrt(n);
  const double median = (at((n - 1) / 2) + at(n / 2)) / 2;
  std::printf(
      "{\"bytes\": %zu, \"time_us_p50\": %.4f, \"time_us_p50_low\": %.4f, \"time_us_p50_high\": %.4f, "
      "\"samples\": %zu, \"calls_per_sample\": %zu, \"wrong\": %zu, \"core_round_trip_ns_before\": %.1f, "
      "\"core_round_trip_ns_after\": %.1f}\n",
      bytes, median, at(std::floor(n / 2 - half_width)), at(std::ceil(n / 2 + half_width)), samples_us.size(), n_calls,
      wrong, distance_before_ns, distance_after_ns);
  std::fflush(stdout);
}

/// Verifies all elements of one more call, on all ranks; in-place algorithms find their input in the output.
/// Collective.
template <class Peer, class Operation>
std::size_t verify(Peer& peer, Operation& operation, const FloatBuffer& input, FloatBuffer& output) {
  std::copy_n(input.data(), input.n_elements(), output.data());
  peer.barrier();
  operation();
  std::vector<double> wrong{static_cast<double>(count_wrong(output, peer.n_ranks()))};
  peer.max_over_ranks(wrong);
  return static_cast<std::size_t>(wrong[0]);
}

/// Collective: warms up, measures, verifies, and prints a row on rank 0. `Peer` has rank(), n_ranks(), barrier(),
/// max_over_ranks(std::vector<double>&), plan(input, output), which returns the all-reduce as a callable,
/// core_distance_ns(), 0 if unknown, and block_below_s: several shorter calls are timed at once, so that clock and
/// barrier do not matter.
template <class Peer>
void measure(Peer& peer, std::size_t bytes, double seconds) {
  const FloatBuffer input(bytes / sizeof(float));
  FloatBuffer output(input.n_elements());
  for (std::size_t i = 0; i < input.n_elements(); ++i) input.data()[i] = input_value(peer.rank(), i);
  auto operation = peer.plan(input, output);

  const double call_s = warm_up(peer, operation);
  const double block_s = 5 * Peer::block_below_s;
  const double n_calls = call_s < Peer::block_below_s ? std::ceil(block_s / call_s) : 1.0;
  const double n_samples = std::clamp(seconds / (n_calls * call_s), 20.0, 5000.0);

  const double distance_before_ns = peer.core_distance_ns();
  std::vector<double> samples_us(static_cast<std::size_t>(n_samples));
  for (double& sample : samples_us) {
    sample = time_calls(peer, operation, static_cast<std::size_t>(n_calls)) * 1e6 / n_calls;
  }
  const double distance_after_ns = peer.core_distance_ns();
  peer.max_over_ranks(samples_us);
  const std::size_t wrong = verify(peer, operation, input, output);
  if (peer.rank() == 0)
    print_row(bytes, std::move(samples_us), static_cast<std::size_t>(n_calls), wrong, distance_before_ns,
              distance_after_ns);
}

}  // namespace compare
