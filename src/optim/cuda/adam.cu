#include "optim/cuda/update_bodies.hpp"

namespace lockstep::optim::cuda {
namespace {

struct Adam {
  using Numbers = AdamNumbers;
  static constexpr int n_states = 2;
  static constexpr bool reads_gradient = true;
  static constexpr bool writes_state = true;
  LOCKSTEP_HOST_DEVICE static void step(float g, float& p, float& exp_avg, float& exp_avg_sq, const Numbers& s) {
    step_adam(g, p, exp_avg, exp_avg_sq, s);
  }
};

}  // namespace

void adam(Stream& stream, const Step& step, DeviceSpan<const AdamNumbers> numbers) {
  enqueue_update<Adam>(stream, "adam", step, numbers);
}

}  // namespace lockstep::optim::cuda
