// What cuDNN is asked to compute, and the plans it has for it on a GPU, which need not be there.
// Invariant: accumulates in float32; a plan that is listed is deterministic and within the workspace asked for.
// Used by tests; includes no header of cuDNN.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "nn/cuda/conv_problem.hpp"
#include "nn/cuda/convolution.hpp"

namespace lockstep::nn::cuda {

/// A GPU as cuDNN knows it.
class GpuModel {
 public:
  /// From cuDNN's own description in JSON (DeviceProperties::serialize(), cuDNN 9.8 or newer). Throws core::Error
  /// (system) if it takes none like that.
  GpuModel(std::string_view description, int architecture);
  ~GpuModel();
  GpuModel(GpuModel&&) noexcept;
  GpuModel& operator=(GpuModel&&) noexcept;

 private:
  friend class PlanSearch;
  struct Properties;
  std::unique_ptr<Properties> properties_;
};

struct ConvPlan {
  std::string name;  ///< engine and knobs: "eng62_k2=0_k13=1"
  core::Bytes workspace{};
  bool is_compiled_at_run_time = false;
};

/// Up to `most` plans for a convolution in `type` (float16, bfloat16 or float32, which takes TF32), in the order of
/// cuDNN's heuristics; none that is not deterministic or needs more workspace. Empty if cuDNN has none. Throws
/// core::Error (system) in cuDNN's words if it does not take the graph.
[[nodiscard]] std::vector<ConvPlan> find_plans(const ConvProblem& problem, ConvPass pass, core::DType type,
                                               const GpuModel& gpu, core::Bytes most_workspace, std::size_t most);

}  // namespace lockstep::nn::cuda
