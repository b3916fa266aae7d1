#include <array>

#include "optim/family.hpp"
#include "optim/numbers.hpp"

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
    const SgdNumbers numbers = sgd_numbers(spec_, range.decays, lr, step);
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
