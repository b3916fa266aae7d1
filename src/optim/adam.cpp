#include <array>

#include "optim/family.hpp"
#include "optim/numbers.hpp"

namespace lockstep::optim {
namespace {

class Adam : public Family {
 public:
  explicit Adam(const OptimizerSpec& spec) : spec_{spec} {}

  [[nodiscard]] std::span<const std::string_view> state_names() const noexcept override { return moment_states; }

  void update(const Range& range, double lr, std::uint64_t step) const override {
    kernels().adam(range.elements, adam_numbers(spec_, range.decays, lr, step));
  }

 private:
  OptimizerSpec spec_;
};

}  // namespace

std::unique_ptr<Family> make_adam(const OptimizerSpec& spec) { return std::make_unique<Adam>(spec); }

}  // namespace lockstep::optim
