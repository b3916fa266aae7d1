#include <array>

#include "optim/family.hpp"

namespace lockstep::optim {
namespace {

class Sgd : public Family {
 public:
  explicit Sgd(const OptimizerSpec& spec) : spec_{spec} {}

  [[nodiscard]] std::span<const std::string_view> state_names() const noexcept override {
    if (spec_.momentum == 0) return {};
    return momentum_state;
  }

  void update(const Range& range, double lr, std::uint64_t step) const override {
    // The first gradient becomes the momentum as it is, as in PyTorch.
    const double undamped = step == 1 ? 1 : 1 - spec_.dampening;
    const SgdNumbers numbers{.decay = static_cast<float>(range.decays ? spec_.weight_decay : 0),
                             .lr = static_cast<float>(lr),
                             .momentum = static_cast<float>(spec_.momentum),
                             .undamped = static_cast<float>(undamped),
                             .is_nesterov = spec_.nesterov};
    if (spec_.momentum == 0)
      kernels().sgd(range.elements, numbers);
    else
      kernels().sgd_momentum(range.elements, numbers);
  }

 private:
  OptimizerSpec spec_;
};

}  // namespace

std::unique_ptr<Family> make_sgd(const OptimizerSpec& spec) { return std::make_unique<Sgd>(spec); }

}  // namespace lockstep::optim
