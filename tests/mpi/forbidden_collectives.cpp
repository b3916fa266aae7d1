// Replaces MPI's data collectives: calling one ends the job. Barrier, broadcast and gather stay for control, the latter
// two up to a size smaller than any data.
#include "mpi/forbidden_collectives.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace {

[[noreturn]] int forbid(const char* name) {
  std::fprintf(stderr, "%s was called, though only algorithm mpi may\n", name);
  std::_Exit(1);  // launchers read all that an ended rank wrote, but may drop output of an aborted one
}

constexpr int largest_control_count = 4096;

}  // namespace

namespace lockstep::support {

bool mpi_collectives_are_forbidden() noexcept { return true; }

}  // namespace lockstep::support

extern "C" {

int MPI_Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) { return forbid("MPI_Allreduce"); }
int MPI_Iallreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*) {
  return forbid("MPI_Iallreduce");
}
int MPI_Reduce(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm) { return forbid("MPI_Reduce"); }
int MPI_Ireduce(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm, MPI_Request*) {
  return forbid("MPI_Ireduce");
}
int MPI_Reduce_scatter(const void*, void*, const int[], MPI_Datatype, MPI_Op, MPI_Comm) {
  return forbid("MPI_Reduce_scatter");
}
int MPI_Ireduce_scatter(const void*, void*, const int[], MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*) {
  return forbid("MPI_Ireduce_scatter");
}
int MPI_Reduce_scatter_block(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) {
  return forbid("MPI_Reduce_scatter_block");
}
int MPI_Allgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) {
  return forbid("MPI_Allgather");
}
int MPI_Allgatherv(const void*, int, MPI_Datatype, void*, const int[], const int[], MPI_Datatype, MPI_Comm) {
  return forbid("MPI_Allgatherv");
}
int MPI_Iallgatherv(const void*, int, MPI_Datatype, void*, const int[], const int[], MPI_Datatype, MPI_Comm,
                    MPI_Request*) {
  return forbid("MPI_Iallgatherv");
}
int MPI_Alltoall(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) { return forbid("MPI_Alltoall"); }
int MPI_Alltoallv(const void*, const int[], const int[], MPI_Datatype, void*, const int[], const int[], MPI_Datatype,
                  MPI_Comm) {
  return forbid("MPI_Alltoallv");
}
int MPI_Scan(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) { return forbid("MPI_Scan"); }
int MPI_Exscan(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) { return forbid("MPI_Exscan"); }
int MPI_Scatter(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm) {
  return forbid("MPI_Scatter");
}
int MPI_Ibcast(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Request*) { return forbid("MPI_Ibcast"); }

int MPI_Iallgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Request*) {
  return forbid("MPI_Iallgather");
}
int MPI_Ireduce_scatter_block(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*) {
  return forbid("MPI_Ireduce_scatter_block");
}
int MPI_Gatherv(const void*, int, MPI_Datatype, void*, const int[], const int[], MPI_Datatype, int, MPI_Comm) {
  return forbid("MPI_Gatherv");
}
int MPI_Igather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm, MPI_Request*) {
  return forbid("MPI_Igather");
}
int MPI_Scatterv(const void*, const int[], const int[], MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm) {
  return forbid("MPI_Scatterv");
}
int MPI_Ialltoall(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Request*) {
  return forbid("MPI_Ialltoall");
}
int MPI_Alltoallw(const void*, const int[], const int[], const MPI_Datatype[], void*, const int[], const int[],
                  const MPI_Datatype[], MPI_Comm) {
  return forbid("MPI_Alltoallw");
}
int MPI_Iscan(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*) { return forbid("MPI_Iscan"); }

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return count > largest_control_count ? forbid("MPI_Bcast of data") : PMPI_Bcast(data, count, type, root, comm);
}
int MPI_Gather(const void* from, int n, MPI_Datatype type, void* to, int m, MPI_Datatype to_type, int root,
               MPI_Comm comm) {
  return n > largest_control_count ? forbid("MPI_Gather of data")
                                   : PMPI_Gather(from, n, type, to, m, to_type, root, comm);
}

}  // extern "C"
