#include "optim/kernels.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "golden.hpp"

namespace lockstep::optim {
namespace {

/// More than two blocks, and not a multiple of any vector.
constexpr std::size_t n_updated = 2500;

/// Gradients of three ranks, parameters and states for a kernel to process, from [7, n_updated).
class Arrays {
 public:
  Arrays() {
    Uniform uniform{3};
    for (auto& gradient : gradients_) fill(gradient, uniform, 0);
    fill(parameters_, uniform, 0);
    for (auto& state : states_) fill(state, uniform, 0.5F);  // 0 and above, as squares are
    for (std::size_t rank = 0; rank < 3; ++rank) sources_[rank] = gradients_[rank].data();
  }

  [[nodiscard]] Elements elements() {
    return {.gradients = sources_,
            .n_gradients = 3,
            .scale = 0.3F,
            .parameters = parameters_.data(),
            .state = {states_[0].data(), states_[1].data()},
            .offset = 7,
            .n = n_updated - 7};
  }

  [[nodiscard]] bool same_bits(const Arrays& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return same(parameters_, other.parameters_) && same(states_[0], other.states_[0]) &&
           same(states_[1], other.states_[1]);
  }

 private:
  static void fill(std::vector<float>& values, Uniform& uniform, float shift) {
    for (std::size_t i = 0; i < n_updated; ++i) values.push_back(uniform.next() + shift);
  }

  std::vector<float> gradients_[3]{};
  std::vector<float> parameters_{};
  std::vector<float> states_[2]{};
  const float* sources_[3]{};
};

const LambNumbers lamb_numbers{.decay = 0.01F,
                               .weight = 0.1F,
                               .beta2 = 0.99F,
                               .weight2 = 0.01F,
                               .bias1 = 0.5F,
                               .bias2_sqrt = 0.7F,
                               .eps = 1e-6F,
                               .rate = 0.01F};

struct KernelCase {
  std::string name;
  std::function<double(const Kernels&, const Elements&)> run;
};

const std::vector<KernelCase>& kernel_cases() {
  static const std::vector<KernelCase> cases{
      {"sgd",
       [](auto& k, auto& e) {
         return k.sgd(e, {0.01F, 0.1F, 0, 1, false}), 0.0;
       }},
      {"sgd_momentum",
       [](auto& k, auto& e) {
         return k.sgd_momentum(e, {0.01F, 0.1F, 0.9F, 0.8F, false}), 0.0;
       }},
      {"nesterov",
       [](auto& k, auto& e) {
         return k.sgd_momentum(e, {0.01F, 0.1F, 0.9F, 1, true}), 0.0;
       }},
      {"adam",
       [](auto& k, auto& e) {
         return k.adam(e, {0.01F, 0.99F, 0.1F, 0.99F, 0.01F, 0.7F, 1e-8F, 0.1F}), 0.0;
       }},
      {"adadelta",
       [](auto& k, auto& e) {
         return k.adadelta(e, {0.01F, 1, 0.9F, 0.1F, 1e-6F}), 0.0;
       }},
      {"lars",
       [](auto& k, auto& e) {
         return k.lars(e, {0.01F, 0.9F, 0.1F}), 0.0;
       }},
      {"lamb_moments_parameter", [](auto& k, auto& e) { return k.lamb_moments(e, lamb_numbers).parameter; }},
      {"lamb_moments_update", [](auto& k, auto& e) { return k.lamb_moments(e, lamb_numbers).update; }},
      {"lamb", [](auto& k, auto& e) { return k.lamb(e, lamb_numbers), 0.0; }},
      {"squared_gradient", [](auto& k, auto& e) { return k.squared_gradient(e); }},
      {"squared_parameter", [](auto& k, auto& e) { return k.squared_parameter(e); }},
  };
  return cases;
}

TEST(Kernels, AllSetsGiveTheSameBits) {
  for (const KernelCase& kernel : kernel_cases()) {
    Arrays reference;
    const double expected = kernel.run(*available_kernels().front(), reference.elements());
    EXPECT_TRUE(!reference.same_bits(Arrays{}) || expected != 0) << kernel.name << " does nothing";
    for (const Kernels* set : available_kernels()) {
      Arrays arrays;
      EXPECT_EQ(kernel.run(*set, arrays.elements()), expected) << kernel.name << " of " << set->name;
      EXPECT_TRUE(arrays.same_bits(reference)) << kernel.name << " of " << set->name;
    }
  }
}

TEST(Kernels, SquaresAreSummedInDouble) {
  std::vector<float> values(n_updated, 1e-4F);
  values[0] = 1e2F;  // in float32 its square would absorb all the others
  const Elements elements{.parameters = values.data(), .n = n_updated};
  const double small = 1e-4F;
  const double large = 1e2F;
  for (const Kernels* set : available_kernels())
    EXPECT_NEAR(set->squared_parameter(elements) - large * large, (n_updated - 1) * small * small, 1e-9) << set->name;
}

}  // namespace
}  // namespace lockstep::optim
