#include <array>
#include <cmath>

#include "optim/family.hpp"

namespace lockstep::optim {
namespace {

/// Algorithm 2 of the paper with phi(z) = z. A tensor that is 0, or whose update is, keeps the global rate, as in LARS.
class Lamb : public Family {
 public:
  explicit Lamb(const OptimizerSpec& spec) : spec_{spec} {}

  [[nodiscard]] std::span<const std::string_view> state_names() const noexcept override { return moment_states; }
  [[nodiscard]] bool needs_norms() const noexcept override { return true; }

  SquaredNorms measure(const Range& range, std::uint64_t step) const override {
    return kernels().lamb_moments(range.elements, numbers(range, step, 0));
  }

  void update(const Range& range, double lr, std::uint64_t step) const override {
    const auto [parameter, update] = range.norms;
    const bool adapts = range.decays && parameter != 0 && update != 0;
    kernels().lamb(range.elements, numbers(range, step, adapts ? lr * std::sqrt(parameter / update) : lr));
  }

 private:
  [[nodiscard]] LambNumbers numbers(const Range& range, std::uint64_t step, double rate) const {
    const auto t = static_cast<double>(step);
    return {.decay = static_cast<float>(range.decays ? spec_.weight_decay : 0),
            .weight = static_cast<float>(1 - spec_.beta1),
            .beta2 = static_cast<float>(spec_.beta2),
            .weight2 = static_cast<float>(1 - spec_.beta2),
            .bias1 = static_cast<float>(1 - std::pow(spec_.beta1, t)),
            .bias2_sqrt = static_cast<float>(std::sqrt(1 - std::pow(spec_.beta2, t))),
            .eps = static_cast<float>(spec_.eps),
            .rate = static_cast<float>(rate)};
  }

  OptimizerSpec spec_;
};

}  // namespace

std::unique_ptr<Family> make_lamb(const OptimizerSpec& spec) { return std::make_unique<Lamb>(spec); }

}  // namespace lockstep::optim
