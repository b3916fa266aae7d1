// Convolutions by cuDNN: its plans on a GPU, which need not be there to ask for them, and their execution, for which it
// must be.
// Invariant: accumulates in float32, within a workspace.
// Used by nn/cuda's device and tests; includes no header of cuDNN.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
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
  [[nodiscard]] int architecture() const noexcept;

 private:
  friend class PlanSearch;
  struct Properties;
  std::unique_ptr<Properties> properties_;
};

struct ConvPlan {
  std::string name;  ///< engine and knobs: "eng62_k2=0_k13=1"
  core::Bytes workspace{};
  bool is_compiled_at_run_time = false;
  std::int64_t index = 0;  ///< in the list that cuDNN's heuristics made, or after it
  bool is_listed = true;   ///< there; else it is an engine's that they hide
};

/// As the name of a plan: the plain product, and a kernel of ours.
inline constexpr std::string_view split_name = "split";

struct TimedPlan {
  ConvPlan plan{};
  double seconds = 0;  ///< a median; infinity where it cannot run, or was far too slow at once
};

/// Of the plans that cuDNN 9.19 lists for ResNet-50 those with more are copies beside others without.
inline constexpr core::Bytes most_workspace{std::uint64_t{32} << 20};

struct PlanFilter {
  core::Bytes most_workspace = cuda::most_workspace;
  bool is_deterministic = true;
  std::size_t most = 1;           ///< of those that heuristics list, beside compiled ones: these push none out
  std::size_t most_compiled = 4;  ///< at run time, which takes a second each
  bool prefers_ready = false;     ///< compiled ones only where there is no other
  bool has_all_engines = false;   ///< one more of each engine that heuristics hide, as they do Hopper's best
  bool builds = true;             ///< else they are what cuDNN offers, without their workspace
};

/// For a product in `type` (float16, bfloat16 or float32, which takes TF32), in the order of cuDNN's heuristics,
/// then by engine. Empty if cuDNN has none. Throws core::Error (system) in cuDNN's words if it does not take the graph.
[[nodiscard]] std::vector<ConvPlan> find_plans(const Product& product, core::DType type, const GpuModel& gpu,
                                               const PlanFilter& filter);

/// Whether an epilogue is tried as part of its product. If cuDNN compiles that at run time, one second each, only for
/// small products, for which an additional kernel takes much of the time.
[[nodiscard]] bool may_fuse(const Product& product, core::DType type);

struct PlanChoice {
  std::string folder{};        ///< of what was chosen in other runs: plan_cache_folder(), or "" for none
  bool is_exhaustive = false;  ///< every plan is timed, whatever was chosen before, which takes minutes
  int n_threads = 1;           ///< of the host, which compile plans before they are timed; the calling one among them
  double compiling_s = 5;  ///< since a choice began: later none are compiled, but for want of others; infinity: always
  bool always_fuses = false;  ///< an epilogue that nothing was chosen for, which is a test's wish only
  /// Called for each product that was timed, if any plan ran: plans in the order of find_plans(), followed by
  /// split_name if it has an epilogue.
  std::function<void(const Product& product, std::span<const TimedPlan> plans)> on_timed{};
};

/// Plans are the fastest of the promising ones, or the first deterministic one if nothing was chosen. An epilogue is
/// computed with its product only if that was faster than separately. Throws core::Error (system) in cuDNN's words if
/// there is none.
class CudnnConvolutions final : public Convolutions {
 public:
  /// For the accelerator in use.
  explicit CudnnConvolutions(const PlanChoice& rules = {});
  /// Plans only: their operations run on no other device. Chooses the first candidate.
  explicit CudnnConvolutions(GpuModel gpu, const PlanChoice& rules = {});
  ~CudnnConvolutions() override;

  void choose(std::span<const Product> products, core::DType type, const ExecutorOptions& options) override;
  [[nodiscard]] std::unique_ptr<Convolution> plan(const Product& product, core::DType type) override;

 private:
  [[nodiscard]] std::unique_ptr<Convolution> plan_split(const Product& product, core::DType type);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::nn::cuda
