// The kernel sets that are compiled in; whether the processor can run one is for available_kernels() to find out.
// Invariant: constant-initialized, so that loading the program executes no instruction of a set it may not have.
// Used by kernels_dispatch_*.cpp; defined one a file, each compiled with its own flags (lockstep_loop_sources).
#pragma once

#include "comm/kernels.hpp"

namespace lockstep::comm {

extern const Kernels plain_kernels;
extern const Kernels avx2_kernels;    ///< x86 only
extern const Kernels avx512_kernels;  ///< x86 only

}  // namespace lockstep::comm
