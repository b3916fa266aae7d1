#include "nn/cuda/cudnn_graph.hpp"
#include "nn/cuda/plan_cache.hpp"
#include "nn/device.hpp"

namespace lockstep::nn {

std::unique_ptr<cuda::Convolutions> cuda::open_convolutions(int n_threads, bool tunes) {
  return std::make_unique<CudnnConvolutions>(
      PlanChoice{.folder = plan_cache_folder(), .is_exhaustive = tunes, .n_threads = n_threads});
}

std::string_view lacking_for_acceleration() noexcept { return {}; }

}  // namespace lockstep::nn
