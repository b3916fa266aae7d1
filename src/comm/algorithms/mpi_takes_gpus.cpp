// What MPI libraries report about GPUs: Open MPI through an extension that its header may lack, MPICH and its relatives
// since 4.0.
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include "comm/algorithms/algorithms.hpp"

namespace lockstep::comm {

bool mpi_native::takes_gpus() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
  int is_supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &is_supported) == MPI_SUCCESS && is_supported != 0;
#else
  return false;
#endif
}

}  // namespace lockstep::comm
