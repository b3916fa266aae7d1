// How kernels of networks are enqueued.
// Invariant: nvcc compiles this, if there is one, because the code for GPUs comes with it.
// Used by files *.cu alone, which instantiate it for each of their kernels.
#pragma once

#include <initializer_list>
#include <string_view>

#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// For a kernel that enqueue() may replace by another.
template <class Kernel>
void enqueue_itself(runtime::Stream& stream, const Kernel& kernel) {
  using Regions = std::initializer_list<runtime::kernel::Region>;
  constexpr bool has_grid = requires(const Kernel& any) { any.grid(); };
  kernel.touches([&](std::string_view name, Regions reads, Regions writes) {
    if constexpr (has_grid) {
      if (const Grid grid = kernel.grid(); grid.n_blocks > 0)
        runtime::kernel::enqueue(stream, name, grid, reads, writes, kernel);
    } else {
      runtime::kernel::for_each(stream, name, kernel.n(), reads, writes, kernel);
    }
  });
}

template <class Kernel>
void enqueue(runtime::Stream& stream, const Kernel& kernel) {
  enqueue_itself(stream, kernel);
}

}  // namespace lockstep::nn::cuda

/// Instantiates enqueue() of a kernel for all types of activations.
#define LOCKSTEP_KERNEL(Kernel)                                           \
  template void enqueue(runtime::Stream&, const Kernel<core::bfloat16>&); \
  template void enqueue(runtime::Stream&, const Kernel<core::float16>&);  \
  template void enqueue(runtime::Stream&, const Kernel<float>&);
