#include "nn/cuda/cudnn_graph.hpp"
#include "nn/cuda/plan_cache.hpp"

namespace lockstep::nn::cuda {

std::unique_ptr<Convolutions> open_convolutions(int n_threads, bool tunes) {
  return std::make_unique<CudnnConvolutions>(
      PlanChoice{.folder = plan_cache_folder(), .is_exhaustive = tunes, .n_threads = n_threads});
}

}  // namespace lockstep::nn::cuda
