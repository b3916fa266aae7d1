#include "optim/kernels_loops.hpp"

namespace lockstep::optim {

constinit const Kernels plain_kernels = make_kernels("plain");

}  // namespace lockstep::optim
