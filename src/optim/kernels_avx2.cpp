#include "optim/kernels_loops.hpp"

namespace lockstep::optim {

constinit const Kernels avx2_kernels = make_kernels("avx2");

}  // namespace lockstep::optim
