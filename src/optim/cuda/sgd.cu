#include "optim/cuda/update_bodies.hpp"

namespace lockstep::optim::cuda {
namespace {

struct Sgd {
  using Numbers = SgdNumbers;
  static constexpr int n_states = 0;
  static constexpr bool reads_gradient = true;
  static constexpr bool writes_state = true;
  LOCKSTEP_HOST_DEVICE static void step(float g, float& p, float&, float&, const Numbers& s) { step_sgd(g, p, s); }
};

struct SgdMomentum {
  using Numbers = SgdNumbers;
  static constexpr int n_states = 1;
  static constexpr bool reads_gradient = true;
  static constexpr bool writes_state = true;
  LOCKSTEP_HOST_DEVICE static void step(float g, float& p, float& momentum, float&, const Numbers& s) {
    step_sgd_momentum(g, p, momentum, s);
  }
};

}  // namespace

void sgd(Stream& stream, const Step& step, DeviceSpan<const SgdNumbers> numbers) {
  if (step.state[0].size() == 0)
    enqueue_update<Sgd>(stream, "sgd", step, numbers);
  else
    enqueue_update<SgdMomentum>(stream, "sgd_momentum", step, numbers);
}

}  // namespace lockstep::optim::cuda
