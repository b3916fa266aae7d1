// The facts of one rank and, if it is the first of its node, of the node: plain data that travels to rank 0.
// Invariant: nothing is judged here; unknown members keep their declared values.
// Used by collect.cpp and the probes, which fill it, and by the checks.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::training::doctor {

inline constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

/// A port of a network adapter.
struct Port {
  std::string name{};  ///< "mlx5_0/1", "eth0"
  std::string kind{};  ///< "InfiniBand", "RoCE", "Omni-Path", "Slingshot", "Ethernet"
  bool is_active = false;
  double gbps = 0;  ///< 0: unknown

  bool operator==(const Port&) const = default;
};

/// A shared library this process has loaded.
struct Library {
  std::string name{};  ///< "libmpi.so.40"
  std::string path{};
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;

  bool operator==(const Library&) const = default;
};

struct SeenGpu {
  std::string name{};  ///< "NVIDIA H200"
  std::string uuid{};
  std::uint64_t memory = 0;  ///< bytes, in total
  bool has_bf16 = true;      ///< as in runtime::Gpu

  bool operator==(const SeenGpu&) const = default;
};

/// GPUs that a rank may train on, from runtime/gpu.hpp; none, with the reason, if a program cannot train on them.
struct GpuFacts {
  std::vector<SeenGpu> seen{};
  std::string obstacle{};
  std::string fix{};
  std::string driver{};
  std::string toolkit{};  ///< empty: the program is built without CUDA
  std::string cudnn{};    ///< version; empty: the program does not use it
  std::string nccl{};
  std::string nccl_obstacle{};  ///< why ranks with one GPU each cannot sum by it, and what helps
  std::string nccl_fix{};
};

/// ulimit of this process, in bytes or as a number.
struct Limits {
  std::uint64_t locked_memory = unlimited;
  std::uint64_t open_files = unlimited;
  std::uint64_t stack = unlimited;
  std::uint64_t core_file = unlimited;
  std::uint64_t address_space_left = unlimited;
  std::uint64_t data_left = unlimited;
};

/// A set of shards, as one node sees it.
struct SetFacts {
  std::string complaint{};  ///< why it cannot be read; empty if it can
  std::string fix{};
  std::uint64_t n_samples = 0;  ///< of all splits
  std::uint64_t n_files = 0;    ///< named by its manifest
  std::uint64_t n_looked = 0;   ///< of these, those that exist in full
  std::string x{};              ///< "uint8 [28, 28]"
  std::vector<std::string> classes{};
  std::string file_system{};
  std::uint64_t n_read = 0;    ///< bytes of the sample
  double seconds = 0;          ///< for reading them; 0: nothing was read
  double cached_percent = -1;  ///< of the sample, before it was read; below 0: unknown
  std::string unread{};        ///< why nothing was read, although it can be opened
};

/// The folder for checkpoints, as one node sees it.
struct FolderFacts {
  std::string complaint{};  ///< why nothing can be written; empty if it can
  std::string path{};       ///< the examined folder: this one, or its nearest existing parent
  std::string file_system{};
  bool is_network = false;
  bool is_in_home = false;
  std::uint64_t size = 0;
  std::uint64_t free = 0;
  std::string flock{};  ///< "works", or "fails" and why
  std::string fcntl{};
  std::string meeting{};  ///< "seen", or why not, of the file that rank 0 has made there
};

/// Why --nproc cannot start ranks on this node (runtime/launcher_needs.hpp).
struct Obstacle {
  std::string what{};
  std::string fix{};
};

struct NodeFacts {
  std::string kernel{};
  std::string cpu_model{};
  int n_cpus = 0;  ///< online
  int n_numa = 0;
  std::vector<std::string> governors{};
  std::string huge_pages{};
  int numa_balancing = -1;
  double cpu_quota = 0;  ///< processors the control group may use; 0: no limit
  std::uint64_t memory = 0;
  std::uint64_t shm_size = 0;
  std::uint64_t shm_free = 0;
  std::vector<Port> ports{};
  std::vector<std::string> gpus{};
  SetFacts data{};
  SetFacts val{};
  FolderFacts checkpoints{};
  std::string launcher{};  ///< what its own launcher would find, in words
  std::vector<Obstacle> obstacles{};
  std::string name{};                     ///< its full host name
  std::vector<std::string> unresolved{};  ///< names of other nodes, with the reason
  int n_resolved = -1;                    ///< below 0: the time ran out
  double clock_low = 0;                   ///< its clock is ahead of rank 0's by at least this many seconds,
  double clock_high = 0;                  ///< and at most this many
};

struct Facts {
  std::string host{};
  std::string launcher{};
  int launched_rank = -1;
  int launched_ranks = -1;
  int slurm_tasks = -1;
  int pbs_lines = -1;              ///< of PBS_NODEFILE
  std::string pbs_complaint{};     ///< why it cannot be read, although it exists
  std::vector<std::string> pmi{};  ///< the interfaces of the launcher: "PMIx", "PMI"
  std::string own_launcher{};      ///< of the MPI this program is built with
  std::string mpi_library{};       ///< its whole description of itself
  std::string version{};
  std::string digest{};  ///< of this program's file
  std::vector<Library> libraries{};
  std::map<std::string, std::string> variables{};  ///< allow-listed
  Limits limits{};
  GpuFacts gpus{};
  std::string temporary{};          ///< why no temporary file can be made; empty if it can
  std::string missing_temporary{};  ///< the folder of TMPDIR, if it does not exist and only MPI would create it
  bool has_node = false;
  NodeFacts node{};
};

/// One line of JSON.
[[nodiscard]] std::string to_text(const Facts& facts);
/// Reads the result of to_text(), perhaps of another version: missing members are unknown. Throws core::Error (system)
/// for other text.
[[nodiscard]] Facts facts_from_text(std::string_view text);

}  // namespace lockstep::training::doctor
