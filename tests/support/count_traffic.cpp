// Preloaded into a program: counts what passes rank 0 through MPI from MPI_Init to MPI_Finalize, which then appends a
// line "RANKS CALLS MESSAGES BYTES MEMORY SLACK" to the file TRAFFIC_FILE. CALLS: calls of MPI; MESSAGES: those that
// rank 0 sends and receives singly; BYTES: what it receives from others or gives them (a gather counts its block once
// per rank, a broadcast once); MEMORY: the peak resident memory, in KiB; SLACK: by how many ns its sleeps could exceed
// the requested time while MPI started.
#include <mpi.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

namespace {

unsigned long long n_calls, n_messages, n_bytes;
int slack_ns;

void count(MPI_Datatype type, unsigned long long n) {
  int bytes = 0;
  PMPI_Type_size(type, &bytes);
  ++n_calls;
  n_bytes += n * static_cast<unsigned long long>(bytes);
}

}  // namespace

extern "C" {

int MPI_Init_thread(int* n_arguments, char*** arguments, int required, int* provided) {
  slack_ns = prctl(PR_GET_TIMERSLACK);
  return PMPI_Init_thread(n_arguments, arguments, required, provided);
}

int MPI_Send(const void* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm communicator) {
  count(type, n), ++n_messages;
  return PMPI_Send(data, n, type, to, tag, communicator);
}

int MPI_Isend(const void* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm communicator,
              MPI_Request* request) {
  count(type, n), ++n_messages;
  return PMPI_Isend(data, n, type, to, tag, communicator, request);
}

int MPI_Recv(void* data, int n, MPI_Datatype type, int from, int tag, MPI_Comm communicator, MPI_Status* status) {
  count(type, n), ++n_messages;
  return PMPI_Recv(data, n, type, from, tag, communicator, status);
}

int MPI_Irecv(void* data, int n, MPI_Datatype type, int from, int tag, MPI_Comm communicator, MPI_Request* request) {
  count(type, n), ++n_messages;
  return PMPI_Irecv(data, n, type, from, tag, communicator, request);
}

int MPI_Gather(const void* sent, int n_sent, MPI_Datatype sent_type, void* received, int n_received,
               MPI_Datatype received_type, int root, MPI_Comm communicator) {
  int n_ranks = 1;
  PMPI_Comm_size(communicator, &n_ranks);
  count(sent_type, static_cast<unsigned long long>(n_sent) * n_ranks);
  return PMPI_Gather(sent, n_sent, sent_type, received, n_received, received_type, root, communicator);
}

int MPI_Bcast(void* data, int n, MPI_Datatype type, int root, MPI_Comm communicator) {
  count(type, n);
  return PMPI_Bcast(data, n, type, root, communicator);
}

int MPI_Barrier(MPI_Comm communicator) {
  ++n_calls;
  return PMPI_Barrier(communicator);
}

int MPI_Ibarrier(MPI_Comm communicator, MPI_Request* request) {
  ++n_calls;
  return PMPI_Ibarrier(communicator, request);
}

int MPI_Comm_dup(MPI_Comm communicator, MPI_Comm* copy) {
  ++n_calls;
  return PMPI_Comm_dup(communicator, copy);
}

int MPI_Comm_split(MPI_Comm communicator, int color, int key, MPI_Comm* part) {
  ++n_calls;
  return PMPI_Comm_split(communicator, color, key, part);
}

int MPI_Comm_split_type(MPI_Comm communicator, int type, int key, MPI_Info info, MPI_Comm* part) {
  ++n_calls;
  return PMPI_Comm_split_type(communicator, type, key, info, part);
}

int MPI_Finalize() {
  int rank = 0, n_ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const char* const path = std::getenv("TRAFFIC_FILE");
  if (std::FILE* const file = rank == 0 && path != nullptr ? std::fopen(path, "a") : nullptr) {
    std::fprintf(file, "%d %llu %llu %llu %ld %d\n", n_ranks, n_calls, n_messages, n_bytes, usage.ru_maxrss, slack_ns);
    std::fclose(file);
  }
  return PMPI_Finalize();
}
}
