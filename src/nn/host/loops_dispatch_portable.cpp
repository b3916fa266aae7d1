#include "nn/host/loops.hpp"

namespace lockstep::nn::host {

const Loops& loops() noexcept { return plain_loops; }

}  // namespace lockstep::nn::host
