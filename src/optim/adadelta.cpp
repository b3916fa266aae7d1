#include <array>

#include "optim/family.hpp"

namespace lockstep::optim {
namespace {

constexpr std::array<std::string_view, 2> averages{"square_avg", "acc_delta"};

class Adadelta : public Family {
 public:
  explicit Adadelta(const OptimizerSpec& spec) : spec_{spec} {}

  [[nodiscard]] std::span<const std::string_view> state_names() const noexcept override { return averages; }

  void update(const Range& range, double lr, std::uint64_t /*step*/) const override {
    kernels().adadelta(range.elements, {.decay = static_cast<float>(range.decays ? spec_.weight_decay : 0),
                                        .lr = static_cast<float>(lr),
                                        .rho = static_cast<float>(spec_.rho),
                                        .weight = static_cast<float>(1 - spec_.rho),
                                        .eps = static_cast<float>(spec_.eps)});
  }

 private:
  OptimizerSpec spec_;
};

}  // namespace

std::unique_ptr<Family> make_adadelta(const OptimizerSpec& spec) { return std::make_unique<Adadelta>(spec); }

}  // namespace lockstep::optim
