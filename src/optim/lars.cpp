#include <array>

#include "optim/family.hpp"
#include "optim/numbers.hpp"

namespace lockstep::optim {
namespace {

class Lars : public Family {
 public:
  explicit Lars(const OptimizerSpec& spec) : spec_{spec} {}

  [[nodiscard]] std::span<const std::string_view> state_names() const noexcept override { return momentum_state; }
  [[nodiscard]] bool needs_norms() const noexcept override { return true; }

  SquaredNorms measure(const Range& range, std::uint64_t /*step*/) const override {
    return {kernels().squared_parameter(range.elements), kernels().squared_gradient(range.elements)};
  }

  void update(const Range& range, double lr, std::uint64_t /*step*/) const override {
    const double rate = lars_rate(spec_, range.decays, lr, range.norms);
    kernels().lars(range.elements, lars_numbers(spec_, range.decays, rate));
  }

 private:
  OptimizerSpec spec_;
};

}  // namespace

std::unique_ptr<Family> make_lars(const OptimizerSpec& spec) { return std::make_unique<Lars>(spec); }

}  // namespace lockstep::optim
