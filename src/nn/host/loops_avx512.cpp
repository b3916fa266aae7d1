#include "nn/host/loops_body.hpp"

namespace lockstep::nn::host {

constinit const Loops avx512_loops = these_loops;

}  // namespace lockstep::nn::host
