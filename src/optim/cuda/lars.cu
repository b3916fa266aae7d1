#include "optim/cuda/update_bodies.hpp"

namespace lockstep::optim::cuda {
namespace {

struct Lars {
  using Numbers = LarsNumbers;
  static constexpr int n_states = 1;
  static constexpr bool reads_gradient = true;
  static constexpr bool writes_state = true;
  LOCKSTEP_HOST_DEVICE static void step(float g, float& p, float& momentum, float&, const Numbers& s) {
    step_lars(g, p, momentum, s);
  }
};

}  // namespace

void lars(Stream& stream, const Step& step, DeviceSpan<const LarsNumbers> numbers) {
  enqueue_update<Lars>(stream, "lars", step, numbers);
}

}  // namespace lockstep::optim::cuda
