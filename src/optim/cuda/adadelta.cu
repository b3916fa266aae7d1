#include "optim/cuda/update_bodies.hpp"

namespace lockstep::optim::cuda {
namespace {

struct Adadelta {
  using Numbers = AdadeltaNumbers;
  static constexpr int n_states = 2;
  static constexpr bool reads_gradient = true;
  static constexpr bool writes_state = true;
  LOCKSTEP_HOST_DEVICE static void step(float g, float& p, float& square_avg, float& acc_delta, const Numbers& s) {
    step_adadelta(g, p, square_avg, acc_delta, s);
  }
};

}  // namespace

void adadelta(Stream& stream, const Step& step, DeviceSpan<const AdadeltaNumbers> numbers) {
  enqueue_update<Adadelta>(stream, "adadelta", step, numbers);
}

}  // namespace lockstep::optim::cuda
