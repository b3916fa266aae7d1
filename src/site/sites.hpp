// What the documentation of a cluster says about jobs: partitions, limits, nodes, what a job must ask for.
// Invariant: a limit of 0 is not known, and nothing is judged by it.
// Used by script_lint; share/sites.toml holds the facts, and whoever reads it fills these.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "site/environment_lint.hpp"

namespace lockstep::site {

/// Nodes of one kind, or what a job may take of them.
struct Nodes {
  int most = 0;           ///< nodes of a job
  int minutes = 0;        ///< wall time of a job
  int cores = 0;          ///< of a node, for jobs
  int cpu_most = 0;       ///< as most, of jobs without GPUs where the same queue has nodes of both kinds
  int cpu_cores = 0;      ///< as cores, likewise
  int memory_gb = 0;      ///< of a node
  int cpu_memory_gb = 0;  ///< as memory_gb, of nodes without GPUs
  int gpus = 0;           ///< of a node
  std::string gpu{};      ///< their type as a request names it: "a100"
};

struct Partition {
  std::string name{};
  Nodes nodes{};
};

/// Nodes that a job chooses by --constraint.
struct Kind {
  std::set<std::string> features{};
  Nodes nodes{};
};

struct Site {
  std::string name{};        ///< "delta"
  std::string title{};       ///< "NCSA Delta"
  std::string system{};      ///< "slurm", "pbs"; empty: either
  std::string launcher{};    ///< the only one that starts ranks there; empty: several
  std::string mpi_family{};  ///< "cray" where a plain srun will do; "open-mpi" where it needs --mpi
  std::string mpi_flag{};    ///< which --mpi: "pmix"
  Fabric fabric = Fabric::unknown;
  std::vector<std::string> needs{};          ///< directives without which a job is refused
  std::vector<std::string> wants{};          ///< directives without which it gets little
  int most_gpus = 0;                         ///< of all jobs of a user
  std::vector<std::string> gone_gpus{};      ///< types of GPU that a request may still name, though they are gone
  std::vector<std::string> needs_company{};  ///< features that alone choose nodes of several kinds
  std::vector<std::string> not_here{};       ///< partitions of other clusters that are mistaken for this one's
  std::string account_ends{};                ///< of a GPU account: "-delta-gpu"
  std::string cpu_qos_ends{};                ///< of a QOS for jobs without GPUs alone: "-b"
  int most_index = 0;                        ///< of a job array
  std::vector<std::string> replaced{};       ///< variables that others stand for now: "SLURM_TMPDIR=TMPDIR"
  bool has_lmod = false;                     ///< whose functions fail under set -u
  std::vector<Partition> partitions{};
  std::vector<Kind> kinds{};
};

/// By its name; nullptr if there is none.
[[nodiscard]] const Site* find_site(std::span<const Site> sites, std::string_view name);

/// The kind of nodes with most features, all of which are in `constraint` ("a100&4gpus"); nullptr if there is none.
[[nodiscard]] const Kind* find_kind(const Site& site, std::string_view constraint);

/// The features of a constraint: words between &, |, brackets and commas.
[[nodiscard]] std::set<std::string> features_of(std::string_view constraint);

/// Where a script belongs: `asked` (--site), else its "# lockstep: site=S", else the S or S-... of the lib/S.sh that it
/// sources, else the folder it lies in; empty if none of them is the name of a site. The first two need not be one.
[[nodiscard]] std::string site_of(std::span<const Site> sites, std::string_view asked, std::string_view marked,
                                  std::string_view sourced, std::string_view path);

}  // namespace lockstep::site
