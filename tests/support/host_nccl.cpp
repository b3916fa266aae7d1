// The part of NCCL that Lockstep uses, on memory of the host and by MPI. A test links it in NCCL's place to check that
// all ranks make correct calls in the same order.
// Invariant: combines in order of the ranks; ignores streams, because callers have waited for them. A communicator with
// registered memory refuses calls in other memory. Each refuses memory of ncclMemAlloc that is not registered with it,
// or of which ranks use different places. Freeing memory before it is deregistered ends the process with 99.
// $LOCKSTEP_HOST_NCCL_NETWORK: the network that it reports, IB by default.
// $LOCKSTEP_HOST_NCCL_VERSION: its version, such as 22304 for 2.23.4; that of the header by default.
// $LOCKSTEP_HOST_NCCL_UNCONNECTED: "identifier", which rank 0 then cannot make, or "ranks", none of which connects.
// $LOCKSTEP_HOST_NCCL_FAILS: the first failing call, counted from 1; all later ones fail, too.
// $LOCKSTEP_HOST_NCCL_REGISTERS: "none", or "local": windows are null, as for GPUs that do not reach one another.
// $LOCKSTEP_HOST_NCCL_BREAKS: "parts" or "all" communicators report an error by themselves; parts have some ranks of
// another communicator.
#include <mpi.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/dtype.hpp"
#include "runtime/accelerator.hpp"

namespace {

struct Range {
  const std::byte* begin = nullptr;
  std::size_t n_bytes = 0;
  bool is_window = false;
  int n_times = 1;  // registrations of it

  [[nodiscard]] bool has(const void* data, std::size_t n) const {
    const auto* const first = static_cast<const std::byte*>(data);
    return first >= begin && first + n <= begin + n_bytes;
  }
};

}  // namespace

struct ncclComm {
  MPI_Comm raw = MPI_COMM_NULL;
  int rank = 0;
  int n_ranks = 1;
  bool is_part = false;  // of another communicator
  std::string last_error{};
  std::list<Range> known{};  // a list, because addresses are the handles
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

// Gathers `n` elements of all ranks on all ranks.
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

const char* of_connecting = "";  // the last error without a communicator

bool is_unconnected(const char* what) {
  const char* const unconnected = std::getenv("LOCKSTEP_HOST_NCCL_UNCONNECTED");
  if (unconnected == nullptr || std::strcmp(unconnected, what) != 0) return false;
  of_connecting = "no interface that was asked for";
  return true;
}

std::list<Range>& allocated() {
  static std::list<Range> all;
  return all;
}
std::mutex of_communicators;  // several threads end communicators after an error
std::list<ncclComm_t>& communicators() {
  static std::list<ncclComm_t> all;
  return all;
}

[[noreturn]] void end(const char* complaint) {
  std::fprintf(stderr, "NCCL of the host: %s\n", complaint);
  std::_Exit(99);
}

// Whether a number is the same on all ranks; `number` is the number and its negative.
bool is_same_for_all(const std::array<std::int64_t, 2>& number, ncclComm_t comm) {
  std::array<std::int64_t, 2> most{};
  MPI_Allreduce(number.data(), most.data(), 2, MPI_INT64_T, MPI_MAX, comm->raw);
  return most == number;
}

const Range* find(const std::list<Range>& ranges, const void* data, std::size_t n_bytes) {
  const auto found = std::ranges::find_if(ranges, [&](const Range& range) { return range.has(data, n_bytes); });
  return found == ranges.end() ? nullptr : &*found;
}

bool registers(bool is_window) {
  const char* const most = std::getenv("LOCKSTEP_HOST_NCCL_REGISTERS");
  return most == nullptr || (!is_window && std::strcmp(most, "local") == 0);
}

// Memory must be registered, or not NCCL's; shared memory must be at the same place on all ranks.
ncclResult_t check_place(const void* data, std::size_t n_bytes, ncclComm_t comm, bool is_shared) {
  const Range* const range = find(comm->known, data, n_bytes);
  const bool could_be_known = registers(false) && find(allocated(), data, n_bytes) != nullptr;
  if (range == nullptr && (!comm->known.empty() || could_be_known)) {
    comm->last_error = "memory that is not registered";
    return ncclInvalidUsage;
  }
  if (range == nullptr || !is_shared) return ncclSuccess;
  const std::int64_t offset = static_cast<const std::byte*>(data) - range->begin;
  if (is_same_for_all({offset, -offset}, comm)) return ncclSuccess;
  comm->last_error = "offsets in registered memory differ";
  return ncclInvalidUsage;
}

// Logs as NCCL does; a test of nccl/library.cpp checks the words.
void log_connection() {
  const char* const level = std::getenv("NCCL_DEBUG");
  const char* const path = std::getenv("NCCL_DEBUG_FILE");
  const char* const network = std::getenv("LOCKSTEP_HOST_NCCL_NETWORK");
  if (level == nullptr || std::strcmp(level, "INFO") != 0 || path == nullptr) return;
  std::FILE* const file = std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "node:1:1 [0] NCCL INFO Using network %s\n", network != nullptr ? network : "IB");
  std::fprintf(file,
               "node:1:1 [0] NCCL INFO 24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels\n");
  std::fclose(file);
}

[[maybe_unused]] Range* make_known(ncclComm_t comm, void* data, std::size_t n_bytes, bool is_window) {
  return &comm->known.emplace_back(Range{static_cast<std::byte*>(data), n_bytes, is_window, 1});
}

[[maybe_unused]] ncclResult_t make_unknown(ncclComm_t comm, const void* handle, bool is_window) {
  const auto of = std::ranges::find_if(
      comm->known, [&](const Range& range) { return &range == handle && range.is_window == is_window; });
  if (of == comm->known.end()) return ncclInvalidArgument;
  if (--of->n_times == 0) comm->known.erase(of);
  return ncclSuccess;
}

// A message of a group, which is processed at the group's end: one of the two addresses is null.
struct Message {
  const void* from = nullptr;
  void* to = nullptr;
  int n_bytes = 0;
  int peer = 0;
  MPI_Comm comm = MPI_COMM_NULL;
};
int n_groups_open = 0;
std::vector<Message>& messages() {
  static std::vector<Message> all;
  return all;
}

// Outside of a group each rank of a ring would wait for the next.
ncclResult_t keep(Message message, std::size_t n, ncclDataType_t type, ncclComm_t comm) {
  if (n_groups_open == 0) {
    comm->last_error = "a message outside of a group";
    return ncclInvalidUsage;
  }
  if (message.peer < 0 || message.peer >= comm->n_ranks) return ncclInvalidArgument;
  message.n_bytes = static_cast<int>(n * lockstep::core::size_of(type_of(type)));
  message.comm = comm->raw;
  messages().push_back(message);
  const ncclResult_t result = begin(comm);
  if (result != ncclSuccess) messages().clear();  // because no other rank's messages are sent either
  return result;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const char* const other = std::getenv("LOCKSTEP_HOST_NCCL_VERSION");
  *version = other != nullptr ? std::atoi(other) : NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (is_unconnected("identifier")) return ncclSystemError;
  std::fill(std::begin(id->internal), std::end(id->internal), 'i');
  return ncclSuccess;
}
// All ranks must pass rank 0's identifier.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int n_ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
  if (is_unconnected("ranks")) return ncclSystemError;
  *comm = new ncclComm{.rank = rank, .n_ranks = n_ranks, .last_error = {}};
  MPI_Comm_dup(MPI_COMM_WORLD, &(*comm)->raw);
  communicators().push_back(*comm);
  log_connection();
  ncclUniqueId right;
  ncclGetUniqueId(&right);
  return std::memcmp(&id, &right, sizeof id) == 0 ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommSplit(ncclComm_t of, int color, int key, ncclComm_t* comm, ncclConfig_t*) {
  *comm = new ncclComm{.is_part = true};
  MPI_Comm_split(of->raw, color, key, &(*comm)->raw);
  MPI_Comm_rank((*comm)->raw, &(*comm)->rank);
  MPI_Comm_size((*comm)->raw, &(*comm)->n_ranks);
  communicators().push_back(*comm);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm->known.empty()) end("a communicator goes while it knows memory");
  communicators().remove(comm);
  MPI_Comm_free(&comm->raw);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock{of_communicators};
  comm->known.clear();
  communicators().remove(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const char* const breaks = std::getenv("LOCKSTEP_HOST_NCCL_BREAKS");
  const bool is_broken = breaks != nullptr && (comm->is_part || std::strcmp(breaks, "all") == 0);
  *error = is_broken ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) { return result == ncclSystemError ? "system error" : "an error"; }
const char* ncclGetLastError(ncclComm_t comm) { return comm != nullptr ? comm->last_error.c_str() : of_connecting; }
ncclResult_t ncclGroupStart() {
  ++n_groups_open;
  return ncclSuccess;
}
// Sends and receives begin when all messages of a group are known; other calls are done at once.
ncclResult_t ncclGroupEnd() {
  if (n_groups_open == 0) return ncclInvalidUsage;
  if (--n_groups_open > 0) return ncclSuccess;
  std::vector<MPI_Request> requests;
  for (const Message& message : std::exchange(messages(), {})) {
    requests.push_back(MPI_REQUEST_NULL);
    if (message.from != nullptr)
      MPI_Isend(message.from, message.n_bytes, MPI_BYTE, message.peer, 0, message.comm, &requests.back());
    else
      MPI_Irecv(message.to, message.n_bytes, MPI_BYTE, message.peer, 0, message.comm, &requests.back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  return ncclSuccess;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
// Allocates from the recorder, which then judges its uses like any memory of the device.
ncclResult_t ncclMemAlloc(void** data, size_t n_bytes) {
  int version = 0;
  ncclGetVersion(&version);
  if (version < NCCL_VERSION(2, 19, 0)) end("there is no such function in this version");
  *data = lockstep::runtime::accelerator()->allocate(n_bytes, lockstep::runtime::Memory::device);
  if (*data == nullptr) return ncclUnhandledCudaError;
  std::memset(*data, 0x5a, n_bytes);
  allocated().push_back({static_cast<std::byte*>(*data), n_bytes});
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void* data) {
  const std::lock_guard lock{of_communicators};
  for (const ncclComm* const comm : communicators())
    if (find(comm->known, data, 1) != nullptr) end("memory goes while a communicator knows it");
  allocated().remove_if([data](const Range& range) { return range.begin == data; });
  lockstep::runtime::accelerator()->release(static_cast<std::byte*>(data), lockstep::runtime::Memory::device);
  return ncclSuccess;
}
// Returns the same handle again for memory that is already registered in this way.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* data, size_t n_bytes, void** handle) {
  if (find(allocated(), data, n_bytes) == nullptr) return ncclInvalidArgument;
  const auto again = std::ranges::find_if(comm->known, [&](const Range& range) {
    return range.begin == data && range.n_bytes == n_bytes && !range.is_window;
  });
  if (again != comm->known.end()) ++again->n_times;
  *handle = again != comm->known.end() ? &*again : registers(false) ? make_known(comm, data, n_bytes, false) : nullptr;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) { return make_unknown(comm, handle, false); }
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* data, size_t n_bytes, ncclWindow_t* window, int flags) {
  if (find(allocated(), data, n_bytes) == nullptr || flags != NCCL_WIN_COLL_SYMMETRIC) return ncclInvalidArgument;
  const auto size = static_cast<std::int64_t>(n_bytes);
  if (!is_same_for_all({size, -size}, comm)) return ncclInvalidArgument;
  if (registers(true)) {
    *window = reinterpret_cast<ncclWindow_t>(make_known(comm, data, n_bytes, true));
    return ncclSuccess;
  }
  void* local = nullptr;  // as in 2.28.9
  const ncclResult_t result = ncclCommRegister(comm, data, n_bytes, &local);
  *window = static_cast<ncclWindow_t>(local);
  return result;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  return make_unknown(comm, window, true) == ncclSuccess ? ncclSuccess : make_unknown(comm, window, false);
}
#endif

ncclResult_t ncclAllReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t) {
  const std::vector<std::byte> result = reduce(from, n, type, op, comm);
  if (const auto bad = check_place(from, result.size(), comm, true)) return bad;
  if (const auto bad = check_place(to, result.size(), comm, true)) return bad;
  std::copy(result.begin(), result.end(), static_cast<std::byte*>(to));
  return begin(comm);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t) {
  const auto n_ranks = static_cast<std::size_t>(comm->n_ranks);
  const std::vector<std::byte> result = reduce(from, n * n_ranks, type, op, comm);
  if (const auto bad = check_place(from, result.size(), comm, true)) return bad;
  if (const auto bad = check_place(to, result.size() / n_ranks, comm, false)) return bad;
  std::memcpy(to, result.data() + result.size() / n_ranks * static_cast<std::size_t>(comm->rank),
              result.size() / n_ranks);
  return begin(comm);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t n, ncclDataType_t type, ncclComm_t comm, cudaStream_t) {
  const std::size_t n_bytes = n * lockstep::core::size_of(type_of(type));
  const std::vector<std::byte> all = gather(from, n_bytes, comm);
  if (const auto bad = check_place(from, n_bytes, comm, false)) return bad;
  if (const auto bad = check_place(to, all.size(), comm, true)) return bad;
  std::copy(all.begin(), all.end(), static_cast<std::byte*>(to));
  return begin(comm);
}
ncclResult_t ncclReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t) {
  const std::vector<std::byte> result = reduce(from, n, type, op, comm);
  if (const auto bad = check_place(from, result.size(), comm, false)) return bad;
  if (comm->rank != root) return begin(comm);
  if (const auto bad = check_place(to, result.size(), comm, false)) return bad;
  std::copy(result.begin(), result.end(), static_cast<std::byte*>(to));
  return begin(comm);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t) {
  const std::size_t n_bytes = n * lockstep::core::size_of(type_of(type));
  if (comm->rank == root && from != to) std::memcpy(to, from, n_bytes);
  MPI_Bcast(to, static_cast<int>(n_bytes), MPI_BYTE, root, comm->raw);
  if (const auto bad = check_place(from, n_bytes, comm, false)) return bad;
  if (const auto bad = check_place(to, n_bytes, comm, false)) return bad;
  return begin(comm);
}
ncclResult_t ncclSend(const void* from, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  return keep({.from = from, .peer = peer}, n, type, comm);
}
ncclResult_t ncclRecv(void* to, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  return keep({.to = to, .peer = peer}, n, type, comm);
}

}  // extern "C"
