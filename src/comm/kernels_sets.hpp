// The kernel sets that are compiled in; available_kernels() checks which of them the processor can run.
// Invariant: constant-initialized, so that loading the program executes no instruction that the processor may lack.
// Used by kernels_dispatch_*.cpp; one file defines each, compiled with its own flags (lockstep_loop_sources).
#pragma once

#include "comm/kernels.hpp"

namespace lockstep::comm {

extern const Kernels plain_kernels;
extern const Kernels avx2_kernels;    ///< x86 only
extern const Kernels avx512_kernels;  ///< x86 only

}  // namespace lockstep::comm
