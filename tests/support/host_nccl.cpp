// What Lockstep uses of NCCL, on memory of the host and by MPI: a test links it in NCCL's place to see that it is asked
// for the right things, by all ranks in one order.
// Invariant: combines in order of the ranks; streams are ignored, as whoever calls has waited for them.
// $LOCKSTEP_HOST_NCCL_FAILS: the call from which on all fail, counted from 1.
#include <mpi.h>
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "core/dtype.hpp"

struct ncclComm {
  MPI_Comm raw = MPI_COMM_NULL;
  int rank = 0;
  int n_ranks = 1;
  std::string last_error;
};

namespace {

using lockstep::core::DType;

DType type_of(ncclDataType_t type) {
  constexpr DType types[] = {DType::int8,   DType::uint8,   DType::int32,   DType::uint32,  DType::int64,
                             DType::uint64, DType::float16, DType::float32, DType::float64, DType::bfloat16};
  return types[type];
}

template <class T>
T combine(T a, T b, ncclRedOp_t op) {
  if constexpr (!std::is_arithmetic_v<T>) {
    return T{combine(static_cast<float>(a), static_cast<float>(b), op)};
  } else {
    switch (op) {
      case ncclProd: return static_cast<T>(a * b);
      case ncclMin: return std::min(a, b);
      case ncclMax: return std::max(a, b);
      default: return static_cast<T>(a + b);
    }
  }
}

// All ranks' `n` elements, of which every rank gets all.
std::vector<std::byte> gather(const void* mine, std::size_t n_bytes, ncclComm_t comm) {
  std::vector<std::byte> all(n_bytes * static_cast<std::size_t>(comm->n_ranks));
  MPI_Allgather(mine, static_cast<int>(n_bytes), MPI_BYTE, all.data(), static_cast<int>(n_bytes), MPI_BYTE, comm->raw);
  return all;
}

std::vector<std::byte> reduce(const void* mine, std::size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm) {
  const std::vector<std::byte> all = gather(mine, n * lockstep::core::size_of(type_of(type)), comm);
  std::vector<std::byte> result(all.size() / static_cast<std::size_t>(comm->n_ranks));
  lockstep::core::visit(type_of(type), [&]<class T>(std::type_identity<T>) {
    const auto* const from = reinterpret_cast<const T*>(all.data());
    auto* const to = reinterpret_cast<T*>(result.data());
    for (std::size_t i = 0; i < n; ++i) {
      to[i] = from[i];
      for (std::size_t r = 1; r < static_cast<std::size_t>(comm->n_ranks); ++r)
        to[i] = combine(to[i], from[r * n + i], op);
      if (op == ncclAvg) to[i] = T(static_cast<float>(to[i]) / static_cast<float>(comm->n_ranks));
    }
  });
  return result;
}

ncclResult_t begin(ncclComm_t comm) {
  static int n_calls = 0;
  const char* const fails = std::getenv("LOCKSTEP_HOST_NCCL_FAILS");
  if (fails == nullptr || ++n_calls < std::atoi(fails)) return ncclSuccess;
  comm->last_error = "a fault that was asked for";
  return ncclSystemError;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::fill(std::begin(id->internal), std::end(id->internal), 'i');
  return ncclSuccess;
}
// All ranks must bring rank 0's identifier.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int n_ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
  *comm = new ncclComm{.rank = rank, .n_ranks = n_ranks, .last_error = {}};
  MPI_Comm_dup(MPI_COMM_WORLD, &(*comm)->raw);
  ncclUniqueId right;
  ncclGetUniqueId(&right);
  return std::memcmp(&id, &right, sizeof id) == 0 ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  MPI_Comm_free(&comm->raw);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) { return result == ncclSystemError ? "system error" : "an error"; }
const char* ncclGetLastError(ncclComm_t comm) { return comm != nullptr ? comm->last_error.c_str() : ""; }
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }

ncclResult_t ncclAllReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t) {
  const std::vector<std::byte> result = reduce(from, n, type, op, comm);
  std::copy(result.begin(), result.end(), static_cast<std::byte*>(to));
  return begin(comm);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t) {
  const auto n_ranks = static_cast<std::size_t>(comm->n_ranks);
  const std::vector<std::byte> result = reduce(from, n * n_ranks, type, op, comm);
  std::memcpy(to, result.data() + result.size() / n_ranks * static_cast<std::size_t>(comm->rank),
              result.size() / n_ranks);
  return begin(comm);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t n, ncclDataType_t type, ncclComm_t comm, cudaStream_t) {
  const std::vector<std::byte> all = gather(from, n * lockstep::core::size_of(type_of(type)), comm);
  std::copy(all.begin(), all.end(), static_cast<std::byte*>(to));
  return begin(comm);
}
ncclResult_t ncclReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t) {
  const std::vector<std::byte> result = reduce(from, n, type, op, comm);
  if (comm->rank == root) std::copy(result.begin(), result.end(), static_cast<std::byte*>(to));
  return begin(comm);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t) {
  const std::size_t n_bytes = n * lockstep::core::size_of(type_of(type));
  if (comm->rank == root && from != to) std::memcpy(to, from, n_bytes);
  MPI_Bcast(to, static_cast<int>(n_bytes), MPI_BYTE, root, comm->raw);
  return begin(comm);
}

}  // extern "C"
