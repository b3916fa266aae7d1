// Shared by tests of networks' kernels: numbers to compute with, and runs in several orders of threads.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"
#include "support/reachable.hpp"
#include "support/sanitized.hpp"

namespace lockstep::nn::cuda {

using core::bfloat16;
using core::float16;
using runtime::kernel::ThreadOrder;
using test::Vector;

/// Runs kernels' bodies, by a stream or with threads in a certain order.
class Runner {
 public:
  Runner() = default;
  explicit Runner(ThreadOrder order) : order_{order} {}

  template <class Body>
  void operator()(const Body& body) {
    if (!order_) {
      enqueue(stream_, body);
      stream_.wait();
    } else if constexpr (requires { body.grid(); }) {
      run_on_host(body, body.grid(), *order_);
    } else {
      run_on_host(runtime::kernel::ForEach<Body>{body.n(), body}, runtime::kernel::grid_of(body.n()), *order_);
    }
  }

 private:
  std::optional<ThreadOrder> order_{};
  runtime::Stream stream_{};
};

using Bytes = std::vector<unsigned char>;

template <class... Vectors>
Bytes bytes_of(const Vectors&... vectors) {
  Bytes all;
  const auto append = [&](const auto& values) {
    const auto* const begin = reinterpret_cast<const unsigned char*>(values.data());
    all.insert(all.end(), begin, begin + values.size() * sizeof values[0]);
  };
  (append(vectors), ...);
  return all;
}

/// The number of bytes that differ, in words; empty if none does.
inline std::string difference(const Bytes& found, const Bytes& wanted) {
  if (found == wanted) return {};
  std::size_t n = 0;
  for (std::size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) n += found[i] != wanted[i] ? 1 : 0;
  return fmt::format("{} of {} bytes differ from the host's {}", n, found.size(), wanted.size());
}

/// Expects the same bytes from f(run) in all orders. The effect of f that remains is that of a stream.
template <class F>
void expect_same_in_all_orders(const F& f) {
  const Bytes first = f(Runner{ThreadOrder::ascending});
  if (!is_slow) {
    EXPECT_TRUE(f(Runner{ThreadOrder::descending}) == first);
  }
  EXPECT_TRUE(f(Runner{ThreadOrder::shuffled}) == first);
  EXPECT_EQ(difference(f(Runner{}), first), "");
}

template <class T>
Vector<T> random_values(std::size_t n, unsigned seed, float mean = 0, float deviation = 1) {
  std::mt19937 random{seed};
  std::normal_distribution<float> normal{mean, deviation};
  Vector<T> values(n);
  for (T& value : values) value = round_to<T>(normal(random));
  return values;
}

/// Rows of channels; those from n_logical on are 0.
template <class T>
Vector<T> random_rows(std::size_t n_rows, std::size_t n_channels, std::size_t n_logical, unsigned seed, float mean = 0,
                      float deviation = 1) {
  auto values = random_values<T>(n_rows * n_channels, seed, mean, deviation);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % n_channels >= n_logical) values[i] = T{};
  return values;
}

template <class T>
double number(T value) {
  return static_cast<double>(to_float(value));
}

/// Half the relative distance of neighbouring numbers.
template <class T>
constexpr double rounding() {
  if (std::is_same_v<T, bfloat16>) return 0x1p-8;
  if (std::is_same_v<T, float16>) return 0x1p-11;
  return 0x1p-24;
}

using ElementTypes = ::testing::Types<bfloat16, float16, float>;

}  // namespace lockstep::nn::cuda
