// Preloaded into a program: at a chosen moment of its life with MPI a chosen rank gets a signal. FAULT_AT: init (before
// MPI_Init), started (in it, at its end), work (in the first gathering after that), finalize (before MPI_Finalize),
// ended (at its end); FAULT_RANK and FAULT_SIGNAL.
#include <mpi.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

namespace {

std::string_view read(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

void reach(std::string_view moment) {
  static bool is_over = false;
  std::string_view rank = read("OMPI_COMM_WORLD_RANK");
  if (rank.empty()) rank = read("PMI_RANK");
  if (is_over || read("FAULT_AT") != moment || rank != read("FAULT_RANK")) return;
  is_over = true;
  std::raise(read("FAULT_SIGNAL") == "STOP" ? SIGSTOP : SIGKILL);
}

}  // namespace

extern "C" {

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  reach("init");
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  reach("started");
  return code;
}

int MPI_Gather(const void* sent, int n_sent, MPI_Datatype sent_type, void* received, int n_received,
               MPI_Datatype received_type, int root, MPI_Comm communicator) {
  reach("work");
  return PMPI_Gather(sent, n_sent, sent_type, received, n_received, received_type, root, communicator);
}

int MPI_Finalize() {
  reach("finalize");
  const int code = PMPI_Finalize();
  reach("ended");
  return code;
}
}
