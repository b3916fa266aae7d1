#include <array>

#include "optim/family.hpp"
#include "optim/numbers.hpp"

namespace lockstep::optim {
namespace {

constexpr std::array<std::string_view, 2> averages{"square_avg", "acc_delta"};

class Adadelta : public Family {
 public:
  explicit Adadelta(const OptimizerSpec& spec) : spec_{spec} {}

  [[nodiscard]] std::span<const std::string_view> state_names() const noexcept override { return averages; }

  void update(const Range& range, double lr, std::uint64_t /*step*/) const override {
    kernels().adadelta(range.elements, adadelta_numbers(spec_, range.decays, lr));
  }

 private:
  OptimizerSpec spec_;
};

}  // namespace

std::unique_ptr<Family> make_adadelta(const OptimizerSpec& spec) { return std::make_unique<Adadelta>(spec); }

}  // namespace lockstep::optim
