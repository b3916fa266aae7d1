// The plainest benchmark of MPI_Allreduce: what Lockstep's own overhead and every MPI library are measured with.
// plain_allreduce --bytes 8,16,... --seconds-per-size S; rank 0 prints one line of JSON per size.
#include <mpi.h>

#include "measure.hpp"

namespace {

class MpiPeer {
 public:
  static constexpr double block_below_s = 10e-6;

  MpiPeer() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks_);
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int n_ranks() const noexcept { return n_ranks_; }
  void barrier() const { MPI_Barrier(MPI_COMM_WORLD); }
  void max_over_ranks(std::vector<double>& values) const {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  [[nodiscard]] auto plan(const compare::FloatBuffer& input, compare::FloatBuffer& output) const {
    return [send = input.data(), receive = output.data(), n = static_cast<int>(input.n_elements())] {
      MPI_Allreduce(send, receive, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
  }

 private:
  int rank_ = 0;
  int n_ranks_ = 0;
};

void print_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<std::size_t>(length));
  std::string first_line = version.substr(0, version.find_first_of(",\n"));
  std::replace(first_line.begin(), first_line.end(), '\t', ' ');
  std::printf("{\"library\": \"%s\"}\n", first_line.c_str());
}

void run(const compare::Options& options) {
  MpiPeer peer;
  if (peer.rank() == 0) print_library();
  const double seconds = std::stod(options.get("--seconds-per-size"));
  for (const std::size_t bytes : options.sizes()) compare::measure(peer, bytes, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  try {
    run(compare::Options(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plain_allreduce: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
}
