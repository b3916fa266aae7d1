// The executor on a GPU, or on any accelerator in use: passes are operations in a stream.
// Invariant: programs are made on first use of a batch size. Between passes of one stream the host waits only to reuse
// the memory that it sends batches from.
// Used by nn/cuda's device and by tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/cuda/convolution.hpp"
#include "nn/executor.hpp"

namespace lockstep::nn::cuda {

[[nodiscard]] std::unique_ptr<Executor> make_cuda_executor(const Network& network, const ExecutorOptions& options,
                                                           Convolutions& convolutions);

}  // namespace lockstep::nn::cuda
