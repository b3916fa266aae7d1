#include "optim/clip.hpp"

namespace lockstep::optim {

double clip_factor(double norm, double max_norm) noexcept {
  const double factor = max_norm / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

}  // namespace lockstep::optim
