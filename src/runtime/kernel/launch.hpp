// A kernel in a stream: its name, what it reads and writes, and how it runs on a GPU and on the host.
// Invariant: a body is a value and owns no memory, so that it may be copied and run later. A kernel names all memory it
// touches, because a recorder judges the order of operations by that.
// Used by files *.cu, which nvcc compiles, or else the C++ compiler.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include "runtime/device.hpp"
#include "runtime/kernel/team.hpp"
#ifdef __CUDACC__
#include "runtime/kernel/cuda_team.cuh"
#endif

namespace lockstep::runtime::kernel {

/// Memory that an operation touches.
struct Region {
  const void* begin = nullptr;
  std::size_t n_bytes = 0;
};

template <class T>
[[nodiscard]] Region region(const T* elements, std::size_t n) noexcept {
  return {elements, n * sizeof(T)};
}

/// Valid during the call that receives it; a receiver that keeps it copies what its spans hold.
struct Operation {
  std::string_view name;
  std::span<const Region> reads;
  std::span<const Region> writes;
  Grid grid;
  std::span<const std::byte> body;
  void (*on_host)(const std::byte* body, const Grid& grid, ThreadOrder order) = nullptr;
  /// Returns a cudaError_t as int; `stream` is a cudaStream_t. Null if nvcc did not compile it.
  int (*on_cuda)(const std::byte* body, const Grid& grid, void* stream) = nullptr;
};

/// Sets the bytes between the members of a value to 0, if the compiler can: recorders compare values by their bytes.
template <class Body>
void clear_padding([[maybe_unused]] Body& body) noexcept {
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&body);
#endif
}

template <class Body>
void enqueue(Stream& stream, std::string_view name, const Grid& grid, std::initializer_list<Region> reads,
             std::initializer_list<Region> writes, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  Body own = body;
  clear_padding(own);
  Operation operation{.name = name,
                      .reads = {reads.begin(), reads.size()},
                      .writes = {writes.begin(), writes.size()},
                      .grid = grid,
                      .body = std::as_bytes(std::span{&own, 1})};
  operation.on_host = [](const std::byte* bytes, const Grid& of, ThreadOrder order) {
    run_on_host(*reinterpret_cast<const Body*>(bytes), of, order);
  };
#ifdef __CUDACC__
  operation.on_cuda = [](const std::byte* bytes, const Grid& of, void* on) {
    constexpr std::size_t unasked_scratch_bytes = 40 * 1024;  // of 48 KiB, minus what Team::reduce() needs
    if (of.scratch_bytes > unasked_scratch_bytes)
      cudaFuncSetAttribute(run_on_device<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(of.scratch_bytes));
    return static_cast<int>(launch(*reinterpret_cast<const Body*>(bytes), of, static_cast<cudaStream_t>(on)));
  };
#endif
  stream.enqueue(operation);
}

/// An elementwise kernel: calls f(i) for i in [0, n), in any order. F: a value with a function for device and host.
template <class F>
struct ForEach {
  static constexpr int max_threads = 256;
  std::size_t n;
  F f;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    team.each([&](int thread) {
      const std::size_t stride = static_cast<std::size_t>(team.n_blocks()) * static_cast<std::size_t>(team.n_threads());
      const std::size_t first = static_cast<std::size_t>(team.block()) * static_cast<std::size_t>(team.n_threads());
      for (std::size_t i = first + static_cast<std::size_t>(thread); i < n; i += stride) f(i);
    });
  }
};

/// Returns the grid of a ForEach over n: enough blocks to fill the largest GPU, but none without work.
[[nodiscard]] inline Grid grid_of(std::size_t n, int n_threads = 256) noexcept {
  constexpr std::size_t most = 2048;
  const std::size_t wanted = (n + static_cast<std::size_t>(n_threads) - 1) / static_cast<std::size_t>(n_threads);
  return {.n_blocks = static_cast<unsigned>(std::min(std::max(wanted, std::size_t{1}), most)), .n_threads = n_threads};
}

template <class F>
void for_each(Stream& stream, std::string_view name, std::size_t n, std::initializer_list<Region> reads,
              std::initializer_list<Region> writes, const F& f) {
  enqueue(stream, name, grid_of(n), reads, writes, ForEach<F>{n, f});
}

}  // namespace lockstep::runtime::kernel
