// Convolutions by cuDNN: finds plans for a GPU, which may be only described, and executes them on a real one.
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
#include "nn/cuda/convolution.hpp"

namespace lockstep::nn::cuda {

/// A GPU as cuDNN knows it.
class GpuModel {
 public:
  /// From cuDNN's own description in JSON (DeviceProperties::serialize(), cuDNN 9.8 or newer). Throws core::Error
  /// (system) if cuDNN does not accept it.
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
  std::int64_t index = 0;  ///< in the list of cuDNN's heuristics, or after its end
  bool is_listed = true;   ///< by the heuristics; otherwise it is from an engine that they leave out
};

/// Stands for a plan's name: the plain product, followed by our own kernel.
inline constexpr std::string_view split_name = "split";

struct TimedPlan {
  ConvPlan plan{};
  double seconds = 0;  ///< the median; infinity if it cannot run or was stopped as far too slow
};

/// Among the plans that cuDNN 9.19 lists for ResNet-50, those that need more only repeat plans that need less.
inline constexpr core::Bytes most_workspace{std::uint64_t{32} << 20};

struct PlanFilter {
  core::Bytes most_workspace = cuda::most_workspace;
  bool is_deterministic = true;
  std::size_t most = 1;           ///< listed by heuristics and not compiled; they do not displace compiled ones
  std::size_t most_compiled = 4;  ///< compiled at run time, which takes a second each
  bool prefers_ready = false;     ///< compiled plans only if there is no other
  bool has_all_engines = false;   ///< adds one plan of each engine that heuristics leave out, such as Hopper's best
  bool builds = true;             ///< otherwise plans are what cuDNN offers, without their workspace
};

/// Plans for a product in `type` (float16, bfloat16, or float32 with TF32), in the order of cuDNN's heuristics, then by
/// engine. Empty if cuDNN has none. Throws core::Error (system) with cuDNN's message if it rejects the graph.
[[nodiscard]] std::vector<ConvPlan> find_plans(const Product& product, core::DType type, const GpuModel& gpu,
                                               const PlanFilter& filter);

/// Whether to try an epilogue as part of its product. If cuDNN compiles that at run time, for a second each, only small
/// products try it: there an additional kernel takes much of the time.
[[nodiscard]] bool may_fuse(const Product& product, core::DType type);

struct PlanChoice {
  std::string folder{};        ///< for choices of other runs: plan_cache_folder(), or "" for none
  bool is_exhaustive = false;  ///< times every plan and ignores stored choices, which takes minutes
  int n_threads = 1;           ///< of the host, which compile plans before they are timed; includes the calling one
  double compiling_s = 5;      ///< after this time, plans are compiled only if there is no other; infinity: no limit
  bool always_fuses = false;   ///< fuses epilogues even without a choice; only tests need this
  /// Called for each product for which a timed plan ran: plans in the order of find_plans(), followed by split_name if
  /// it has an epilogue.
  std::function<void(const Product& product, std::span<const TimedPlan> plans)> on_timed{};
};

/// Uses the fastest of the promising plans, or the first deterministic one if nothing was chosen. Computes an epilogue
/// with its product only if that was faster. Throws core::Error (system) with cuDNN's message if there is no plan.
class CudnnConvolutions final : public Convolutions {
 public:
  /// For the accelerator in use.
  explicit CudnnConvolutions(const PlanChoice& rules = {});
  /// Only makes plans; no other device can run them. Chooses the first candidate.
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
