// A faultless job, which tests then spoil.
// Invariant: the requested number of nodes and ranks, each rank bound to a core of its own.
// Used by the tests of the doctor's checks.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/text.hpp"
#include "training/doctor/checks.hpp"

namespace lockstep::training::doctor {

inline const std::string open_mpi_text = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4";
inline const std::string mpich_text = "MPICH Version:\t4.0.2\nMPICH Release date:\tThu\nMPICH Device:\tch4:ofi\n";

inline NodeFacts healthy_node(int number, int n_local) {
  return {.kernel = "Linux 6.1",
          .cpu_model = "AMD EPYC",
          .n_cpus = n_local,
          .n_numa = 1,
          .governors = {"performance"},
          .huge_pages = "madvise",
          .numa_balancing = 0,
          .memory = 64'000'000'000,
          .shm_size = 32'000'000'000,
          .shm_free = 32'000'000'000,
          .ports = {{.name = "mlx5_0/1", .kind = "InfiniBand", .is_active = true, .gbps = 200}},
          .data = {.n_samples = 1000,
                   .n_files = 2,
                   .n_looked = 2,
                   .x = "uint8 [28, 28]",
                   .classes = {"cat", "dog"},
                   .file_system = "Lustre",
                   .n_read = 256'000'000,
                   .seconds = 0.25,
                   .cached_percent = 0},
          .val = {.x = "uint8 [28, 28]", .classes = {"cat", "dog"}},
          .checkpoints = {.path = "/scratch/me",
                          .file_system = "Lustre",
                          .is_network = true,
                          .size = 1'000'000'000'000,
                          .free = 500'000'000'000,
                          .flock = "works",
                          .fcntl = "works",
                          .meeting = "seen"},
          .name = "node" + std::to_string(number) + ".cluster",
          .n_resolved = 1,
          .clock_low = -1e-4,
          .clock_high = 1e-4};
}

inline Facts healthy_rank(int rank, int n_ranks, int node) {
  return {.host = "node" + std::to_string(node),
          .launcher = "Open MPI mpirun",
          .launched_rank = rank,
          .launched_ranks = n_ranks,
          .pmi = {"PMIx"},
          .own_launcher = "/usr/bin/mpirun",
          .mpi_library = open_mpi_text,
          .version = "0.1.0",
          .digest = "0123456789abcdef",
          .libraries = {{"libmpi.so.40", "/usr/lib/libmpi.so.40", 1'000'000, 1'700'000'000}},
          .variables = {{"OMPI_MCA_pml", "ucx"}, {"SLURM_JOB_ID", "7"}},
          .limits = {.open_files = 4096, .stack = std::uint64_t{8} << 20, .core_file = 0}};
}

inline Job healthy_job(int n_nodes, int n_local) {
  Job job{.request = {.data = "/set", .val = "/val", .checkpoints = "/scratch/me"}};
  const int n_ranks = n_nodes * n_local;
  for (int rank = 0; rank < n_ranks; ++rank) {
    const int node = rank / n_local, local = rank % n_local;
    Facts facts = healthy_rank(rank, n_ranks, node);
    facts.has_node = local == 0;
    if (facts.has_node) facts.node = healthy_node(node, n_local);
    runtime::Place place;
    place.rank = rank;
    place.host = facts.host;
    place.node = node;
    place.local_rank = local;
    place.cpus = {local};
    place.core = local;
    job.topology.places.push_back(place);
    job.ranks.push_back(facts);
  }
  job.topology.n_nodes = n_nodes;
  job.topology.cores_per_node.assign(static_cast<std::size_t>(n_nodes), n_local);
  job.topology.cpus_per_node.assign(static_cast<std::size_t>(n_nodes), n_local);
  return job;
}

/// Compares a finding with the expected verdict, and with parts of its text.
inline void expect(const Finding& finding, Verdict verdict, std::string_view seen, std::string_view fix = {}) {
  EXPECT_EQ(name(finding.verdict), name(verdict)) << finding.seen;
  EXPECT_TRUE(support::has(finding.seen, seen)) << finding.seen;
  EXPECT_TRUE(support::has(finding.fix, fix)) << finding.fix;
  EXPECT_TRUE(verdict <= Verdict::ok || !finding.fix.empty()) << finding.seen;
}

}  // namespace lockstep::training::doctor
