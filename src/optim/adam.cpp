#include <array>
#include <cmath>

#include "optim/family.hpp"

namespace lockstep::optim {
namespace {

/// Adam, whose weight decay is part of the gradient, and AdamW, whose weight decay is not. Corrections of the step are
/// computed in double, as in PyTorch.
class Adam : public Family {
 public:
  explicit Adam(const OptimizerSpec& spec) : spec_{spec} {}

  [[nodiscard]] std::span<const std::string_view> state_names() const noexcept override { return moment_states; }

  void update(const Range& range, double lr, std::uint64_t step) const override {
    const double decay = range.decays ? spec_.weight_decay : 0;
    const bool is_decoupled = spec_.kind == OptimizerKind::adamw;
    const auto t = static_cast<double>(step);
    const double bias1 = 1 - std::pow(spec_.beta1, t);
    const double bias2 = 1 - std::pow(spec_.beta2, t);
    kernels().adam(range.elements, {.decay = static_cast<float>(is_decoupled ? 0 : decay),
                                    .keep = static_cast<float>(is_decoupled ? 1 - lr * decay : 1),
                                    .weight = static_cast<float>(1 - spec_.beta1),
                                    .beta2 = static_cast<float>(spec_.beta2),
                                    .weight2 = static_cast<float>(1 - spec_.beta2),
                                    .bias2_sqrt = static_cast<float>(std::sqrt(bias2)),
                                    .eps = static_cast<float>(spec_.eps),
                                    .rate = static_cast<float>(lr / bias1)});
  }

 private:
  OptimizerSpec spec_;
};

}  // namespace

std::unique_ptr<Family> make_adam(const OptimizerSpec& spec) { return std::make_unique<Adam>(spec); }

}  // namespace lockstep::optim
