// Two clusters made up, one for each batch system.
// Used by tests of what judges job scripts.
#pragma once

#include "site/sites.hpp"

namespace lockstep::site {

/// Each of its limits is another number, so that none can be taken for another.
inline Site slurm_site() {
  return {.name = "here",
          .title = "Here",
          .system = "slurm",
          .launcher = "srun",
          .mpi_family = "open-mpi",
          .mpi_flag = "pmix",
          .needs = {"account"},
          .wants = {"mem"},
          .most_gpus = 24,
          .gone_gpus = {"geforce"},
          .needs_company = {"v100"},
          .not_here = {"ghx4"},
          .account_ends = "-gpu",
          .cpu_qos_ends = "-b",
          .most_index = 3000,
          .replaced = {"OLD_TMPDIR=TMPDIR"},
          .has_lmod = true,
          .partitions = {{"big", {.most = 5, .minutes = 60, .cores = 64, .memory_gb = 256, .gpus = 4, .gpu = "a100"}},
                         {"small", {.most = 1}}},
          .kinds = {{{"v100", "ai"}, {.cores = 46, .gpus = 8, .gpu = "v100"}}}};
}

inline Site pbs_site() {
  return {.name = "there",
          .title = "There",
          .system = "pbs",
          .launcher = "mpiexec",
          .needs = {"walltime"},
          .partitions = {{"main",
                          {.most = 82,
                           .minutes = 720,
                           .cores = 64,
                           .cpu_most = 2488,
                           .cpu_cores = 128,
                           .memory_gb = 487,
                           .cpu_memory_gb = 256,
                           .gpus = 4,
                           .gpu = "a100"}}}};
}

}  // namespace lockstep::site
