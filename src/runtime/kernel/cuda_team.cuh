// The threads of one block on a GPU, as team.hpp's are on the host, and how a kernel is launched there.
// Invariant: every thread of a block calls every member, as all may wait for one another.
// Used by launch.hpp where nvcc compiles it.
#pragma once

#include <cuda_runtime.h>

#include "runtime/kernel/team.hpp"

namespace lockstep::runtime::kernel {

// The members are of both sides, as the bodies that call them are; only the GPU's side does anything.
class CudaTeam {
 public:
  template <class T>
  class PerThread {
   public:
    LOCKSTEP_HOST_DEVICE explicit PerThread(T initial) : value_{initial} {}
    LOCKSTEP_HOST_DEVICE T& operator[](int) { return value_; }
    LOCKSTEP_HOST_DEVICE const T& operator[](int) const { return value_; }

   private:
    T value_;
  };

  template <class T>
  class Span {
   public:
    LOCKSTEP_HOST_DEVICE explicit Span(T* begin) : begin_{begin} {}
    LOCKSTEP_HOST_DEVICE T& operator[](std::size_t i) const { return begin_[i]; }
    LOCKSTEP_HOST_DEVICE T* data() const { return begin_; }

   private:
    T* begin_;
  };

  LOCKSTEP_HOST_DEVICE explicit CudaTeam(std::byte* scratch) : scratch_{scratch} {}

#ifdef __CUDA_ARCH__
  __device__ int n_threads() const { return static_cast<int>(blockDim.x); }
  __device__ unsigned block() const { return blockIdx.x; }
  __device__ unsigned n_blocks() const { return gridDim.x; }
#else
  int n_threads() const { return 0; }
  unsigned block() const { return 0; }
  unsigned n_blocks() const { return 0; }
#endif

  template <class F>
  LOCKSTEP_HOST_DEVICE void each(F&& f) {
#ifdef __CUDA_ARCH__
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
#endif
  }

  template <class T>
  LOCKSTEP_HOST_DEVICE PerThread<T> per_thread(T initial) const {
    return PerThread<T>{initial};
  }

  template <class T>
  LOCKSTEP_HOST_DEVICE Span<T> scratch(std::size_t n) {
    T* begin = reinterpret_cast<T*>(scratch_);
    scratch_ += (n * sizeof(T) + 15) / 16 * 16;
    return Span<T>{begin};
  }

  template <class T, class Combine>
  LOCKSTEP_HOST_DEVICE T reduce(const PerThread<T>& values, Combine combine) const {
    T total{};
#ifdef __CUDA_ARCH__
    __shared__ T of_warps[32];
    T value = values[0];
    for (int n = warp_size / 2; n > 0; n /= 2) value = combine(value, __shfl_down_sync(0xffffffffu, value, n));
    if (threadIdx.x % warp_size == 0) of_warps[threadIdx.x / warp_size] = value;
    __syncthreads();
    total = of_warps[0];
    for (unsigned warp = 1; warp < blockDim.x / warp_size; ++warp) total = combine(total, of_warps[warp]);
    __syncthreads();
#endif
    return total;
  }
  template <class T>
  LOCKSTEP_HOST_DEVICE T sum(const PerThread<T>& values) const {
    return reduce(values, [](T a, T b) { return a + b; });
  }

 private:
  std::byte* scratch_;
};

/// Blocks that an SM shall hold at once, by which registers are shared out; 0: as the compiler likes.
template <class Body>
constexpr unsigned min_blocks() {
  if constexpr (requires { Body::min_blocks; }) return Body::min_blocks;
  return 0;
}

template <class Body>
__global__ void __launch_bounds__(Body::max_threads, min_blocks<Body>()) run_on_device(const Body body) {
  extern __shared__ uint4 scratch[];
  CudaTeam team{reinterpret_cast<std::byte*>(scratch)};
  body(team);
}

}  // namespace lockstep::runtime::kernel
