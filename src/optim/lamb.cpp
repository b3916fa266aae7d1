#include <array>

#include "optim/family.hpp"
#include "optim/numbers.hpp"

namespace lockstep::optim {
namespace {

class Lamb : public Family {
 public:
  explicit Lamb(const OptimizerSpec& spec) : spec_{spec} {}

  [[nodiscard]] std::span<const std::string_view> state_names() const noexcept override { return moment_states; }
  [[nodiscard]] bool needs_norms() const noexcept override { return true; }

  SquaredNorms measure(const Range& range, std::uint64_t step) const override {
    return kernels().lamb_moments(range.elements, lamb_numbers(spec_, range.decays, 0, step));
  }

  void update(const Range& range, double lr, std::uint64_t step) const override {
    const double rate = lamb_rate(range.decays, lr, range.norms);
    kernels().lamb(range.elements, lamb_numbers(spec_, range.decays, rate, step));
  }

 private:
  OptimizerSpec spec_;
};

}  // namespace

std::unique_ptr<Family> make_lamb(const OptimizerSpec& spec) { return std::make_unique<Lamb>(spec); }

}  // namespace lockstep::optim
