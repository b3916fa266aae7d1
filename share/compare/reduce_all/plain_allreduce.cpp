// The plainest benchmark of MPI_Allreduce: it measures Lockstep's own overhead, and every MPI library. plain_allreduce
// --bytes 8,16,... --seconds-per-size S; rank 0 prints one line of JSON per size.
#include <mpi.h>

#include <new>

#include "measure.hpp"

namespace {

class MpiPeer {
 public:
  static constexpr double block_below_s = 10e-6;

  MpiPeer() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks_);
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
    int n_on_node = 0;
    MPI_Comm_size(node, &n_on_node);
    if (n_on_node < n_ranks_) return;  // the distance to other nodes does not depend on cores
    void* mine = nullptr;
    MPI_Win_allocate_shared(sizeof(compare::Line), 1, MPI_INFO_NULL, node, static_cast<void*>(&mine), &window_);
    new (mine) compare::Line;
    MPI_Barrier(node);
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int n_ranks() const noexcept { return n_ranks_; }
  void barrier() const { MPI_Barrier(MPI_COMM_WORLD); }
  void max_over_ranks(std::vector<double>& values) const {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  /// The longest distance between neighbouring ranks.
  [[nodiscard]] double core_distance_ns() const {
    if (window_ == MPI_WIN_NULL) return 0;
    std::vector<double> longest_ns{0};
    for (const int first : {0, 1}) {  // pairs without a common rank, at the same time
      const bool leads = rank_ % 2 == first && rank_ + 1 < n_ranks_;
      const bool follows = rank_ % 2 != first && rank_ > 0;
      barrier();
      if (leads || follows)
        longest_ns[0] =
            std::max(longest_ns[0], compare::round_trip_ns(line(rank_), line(leads ? rank_ + 1 : rank_ - 1), leads));
      barrier();
      line(rank_).value.store(0, std::memory_order_release);
    }
    max_over_ranks(longest_ns);
    return longest_ns[0];
  }
  [[nodiscard]] auto plan(const compare::FloatBuffer& input, compare::FloatBuffer& output) const {
    return [send = input.data(), receive = output.data(), n = static_cast<int>(input.n_elements())] {
      MPI_Allreduce(send, receive, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
  }

 private:
  [[nodiscard]] compare::Line& line(int rank) const {
    MPI_Aint size = 0;
    int unit = 0;
    void* base = nullptr;
    MPI_Win_shared_query(window_, rank, &size, &unit, static_cast<void*>(&base));
    return *static_cast<compare::Line*>(base);
  }

  int rank_ = 0;
  int n_ranks_ = 0;
  MPI_Win window_ = MPI_WIN_NULL;  ///< a line of each rank, if all are on one node
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
