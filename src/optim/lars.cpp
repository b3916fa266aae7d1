#include <array>
#include <cmath>

#include "optim/family.hpp"

namespace lockstep::optim {
namespace {

/// Algorithm 1 of the paper. A tensor that is 0, or whose gradient is, keeps the global rate: by the formula a bias
/// that begins as 0 would stay 0.
class Lars : public Family {
 public:
  explicit Lars(const OptimizerSpec& spec) : spec_{spec} {}

  [[nodiscard]] std::span<const std::string_view> state_names() const noexcept override { return momentum_state; }
  [[nodiscard]] bool needs_norms() const noexcept override { return true; }

  SquaredNorms measure(const Range& range, std::uint64_t /*step*/) const override {
    return {kernels().squared_parameter(range.elements), kernels().squared_gradient(range.elements)};
  }

  void update(const Range& range, double lr, std::uint64_t /*step*/) const override {
    kernels().lars(range.elements, {.decay = static_cast<float>(range.decays ? spec_.weight_decay : 0),
                                    .momentum = static_cast<float>(spec_.momentum),
                                    .rate = static_cast<float>(lr * trust_ratio(range))});
  }

 private:
  [[nodiscard]] double trust_ratio(const Range& range) const {
    const auto [parameter, gradient] = range.norms;
    if (!range.decays || parameter == 0 || gradient == 0) return 1;
    return spec_.trust * std::sqrt(parameter) / (std::sqrt(gradient) + spec_.weight_decay * std::sqrt(parameter));
  }

  OptimizerSpec spec_;
};

}  // namespace

std::unique_ptr<Family> make_lars(const OptimizerSpec& spec) { return std::make_unique<Lars>(spec); }

}  // namespace lockstep::optim
