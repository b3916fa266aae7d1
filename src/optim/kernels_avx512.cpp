#include "optim/kernels_loops.hpp"

namespace lockstep::optim {

constinit const Kernels avx512_kernels = make_kernels("avx512");

}  // namespace lockstep::optim
