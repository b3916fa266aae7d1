#include "runtime/environment.hpp"

#include <gtest/gtest.h>

namespace lockstep::runtime {
namespace {

TEST(Recordable, SettingsThatChangeATiming) {
  for (const char* variable :
       {"OMP_NUM_THREADS", "OMPI_MCA_coll", "OMPI_MCA_btl_vader_single_copy_mechanism", "PRTE_MCA_hwloc_x",
        "PMIX_MCA_gds", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "MPICH_GPU_SUPPORT_ENABLED", "UCX_TLS", "FI_PROVIDER",
        "NCCL_ALGO", "PALS_APID", "SLURM_JOB_ID", "SLURM_NTASKS", "PBS_JOBID", "LOCKSTEP_MPIEXEC",
        "CUDA_VISIBLE_DEVICES", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    EXPECT_TRUE(is_recordable(variable)) << variable;
}

TEST(Recordable, NothingOutsideTheAllowList) {
  for (const char* variable : {"", "HOME", "PATH", "USER", "LD_PRELOAD", "SLURM_JOB_USER", "SSH_CONNECTION", "OMP_NUM",
                               "MY_NCCL_ALGO", "ncc_algo", "ONEDNN_VERBOSE"})
    EXPECT_FALSE(is_recordable(variable)) << variable;
}

TEST(Recordable, NoSecretsEvenWithAnAllowedPrefix) {
  for (const char* variable : {"NCCL_API_KEY", "UCX_Token", "LOCKSTEP_SECRET", "FI_PASSWORD", "OMPI_MCA_passphrase",
                               "LOCKSTEP_CREDENTIALS", "MPICH_AUTH"})
    EXPECT_FALSE(is_recordable(variable)) << variable;
}

TEST(Recordable, NoLauncherInternals) {
  for (const char* variable : {"OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_num_nodes", "OMPI_MCA_ess_base_jobid",
                               "PMIX_MCA_server_uri", "OMPI_MCA_orte_tmpdir_base", "PALS_SPOOL_DIR"})
    EXPECT_FALSE(is_recordable(variable)) << variable;
}

}  // namespace
}  // namespace lockstep::runtime
