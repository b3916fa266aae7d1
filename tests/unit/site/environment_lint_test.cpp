#include "site/environment_lint.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "site/forms.hpp"
#include "site/variables.hpp"

namespace lockstep::site {
namespace {

using Variables = std::vector<Variable>;

/// The only finding; fails the test and gives an empty one if there is another number of them.
Finding only_finding(const Variables& variables, Fabric fabric = Fabric::unknown) {
  const auto findings = lint_environment(variables, fabric);
  EXPECT_EQ(findings.size(), 1U) << (findings.empty() ? "nothing was found" : findings.back().what);
  return findings.size() == 1 ? findings.front() : Finding{};
}

TEST(EnvironmentLint, SaysNothingOfNamesThatItKnows) {
  for (const std::string& name : known_variables()) {
    EXPECT_TRUE(is_known_variable(name)) << name;
    EXPECT_EQ(right_name(name), std::nullopt) << name;
    EXPECT_EQ(near_variable(name), std::nullopt) << name;
    const Variables as_script{{name, "$value"}};
    EXPECT_TRUE(lint_environment(as_script).empty()) << name;
  }
  EXPECT_GT(known_variables().size(), 1000U);
}

TEST(EnvironmentLint, EachRuleOfTheTableHasAFormAndEachMisnomerAKnownName) {
  std::size_t n_rules = 0, n_misnomers = 0;
  for (const Family& family : families()) {
    EXPECT_FALSE(family.reader.empty()) << family.prefix;
    const bool is_of_system = family.reader == "Slurm" || family.reader == "PBS";  // what the other one has instead
    for (const Family::Rule& rule : family.rules)
      EXPECT_TRUE(is_of_system ? rule.form == "like" : is_form(rule.form)) << rule.name;
    for (const auto& [wrong, right] : family.misnomers) {
      EXPECT_TRUE(is_known_variable(std::string{family.prefix} + std::string{right})) << right;
      EXPECT_FALSE(is_known_variable(std::string{family.prefix} + std::string{wrong})) << wrong;
    }
    n_rules += family.rules.size();
    n_misnomers += family.misnomers.size();
  }
  EXPECT_GE(n_rules, 33U);
  EXPECT_GE(n_misnomers, 15U);
}

TEST(EnvironmentLint, NamesWhatAMisnomerIsMeantToBe) {
  struct Case {
    const char* wrong;
    const char* right;
  };
  for (const Case one : {Case{"MASTER_ADDRESS", "MASTER_ADDR"}, Case{"NCCL_DISABLE_IB", "NCCL_IB_DISABLE"},
                         Case{"NCCL_LEVEL_GDR_NET", "NCCL_NET_GDR_LEVEL"}, Case{"NCLL_DEBUG", "NCCL_DEBUG"},
                         Case{"FI_CXI_SIZE_CQ_DEFAULT", "FI_CXI_DEFAULT_CQ_SIZE"}}) {
    const Finding finding = only_finding({{one.wrong, "1", 7}});
    EXPECT_EQ(finding.severity, Severity::error) << one.wrong;
    EXPECT_EQ(finding.fix, one.right);
    EXPECT_EQ(finding.line, 7);
  }
}

TEST(EnvironmentLint, AsksWhetherANearNameWasMeant) {
  for (const auto& [wrong, right] : {std::pair{"NCCL_SOCKET_IFNAM", "NCCL_SOCKET_IFNAME"},
                                     {"NCCL_DEUBG", "NCCL_DEBUG"},
                                     {"FI_CXI_DEFAULT_CQSIZE", "FI_CXI_DEFAULT_CQ_SIZE"},
                                     {"UCX_NET_DEVICE", "UCX_NET_DEVICES"},
                                     {"MPICH_OFI_NIC_POLICE", "MPICH_OFI_NIC_POLICY"},
                                     {"OMP_NUM_THREAD", "OMP_NUM_THREADS"},
                                     {"OMPI_MCA_blt", "OMPI_MCA_btl"},
                                     {"OMPI_MCA_btl_tcp_if_inclde", "OMPI_MCA_btl_tcp_if_include"},
                                     {"SLURM_CPU_PER_TASK", "SLURM_CPUS_PER_TASK"},
                                     {"PBS_NODEFLIE", "PBS_NODEFILE"}}) {
    const Finding finding = only_finding({{wrong, "1"}});
    EXPECT_EQ(finding.severity, Severity::warning) << wrong;
    EXPECT_EQ(finding.fix, std::string{"did you mean "} + right + "?");
  }
}

TEST(EnvironmentLint, OnlyNotesOrPassesOverWhatIsFarFromAllItKnows) {
  EXPECT_EQ(only_finding({{"NCCL_OF_NEXT_YEAR", "1"}}).severity, Severity::note);
  EXPECT_EQ(only_finding({{"FI_OF_NEXT_YEAR", "1"}}).severity, Severity::note);
  const Variables open{{"SLURM_SITE_THING", "1"},
                       {"OMPI_MCA_coll_tuned_use_dynamic_rules", "1"},
                       {"OMPI_MCA_plm", "rsh"},
                       {"OMPI_MCA_btl", "^openib,tcp"},
                       {"OMPI_MCA_mtl_base_verbose", "1"},
                       {"UCX_RC_MLX5_TM_ENABLE", "y"},
                       {"MPICH_CH4_SOMETHING", "1"},
                       {"CUDA_HOME", "/usr/local/cuda"},
                       {"MASTER_NODE", "n1"},
                       {"PATH", "/bin"},
                       {"NCCL_", "1"},
                       {"", ""}};
  EXPECT_TRUE(lint_environment(open).empty());
}

TEST(EnvironmentLint, RefusesValuesThatMeanNothing) {
  const Finding finding = only_finding({{"NCCL_NET_GDR_LEVEL", "PBH", 3}});
  EXPECT_EQ(finding.severity, Severity::error);
  EXPECT_NE(finding.what.find("PBH"), std::string::npos);
  EXPECT_NE(finding.fix.find("PHB"), std::string::npos);
  EXPECT_EQ(finding.line, 3);
  for (const auto& [name, value] : {std::pair{"NCCL_P2P_LEVEL", "nvl"},
                                    {"NCCL_DEBUG", "VERBOSE"},
                                    {"NCCL_IB_DISABLE", "true"},
                                    {"NCCL_ALGO", "ring,treee"},
                                    {"NCCL_PROTO", "LL64"},
                                    {"FI_CXI_RX_MATCH_MODE", "soft"},
                                    {"MPICH_OFI_NIC_POLICY", "NEAR"},
                                    {"OMP_NUM_THREADS", "0"},
                                    {"MASTER_PORT", "99999"},
                                    {"RANK", "first"},
                                    {"FI_MR_CACHE_MONITOR", "userfault"},
                                    {"HDF5_USE_FILE_LOCKING", "OFF"}})
    EXPECT_EQ(only_finding({{name, value}}).severity, Severity::error) << name;
}

TEST(EnvironmentLint, TakesValuesThatAreRight) {
  const Variables right{{"NCCL_NET_GDR_LEVEL", "PHB"},
                        {"NCCL_P2P_LEVEL", "5"},
                        {"NCCL_DEBUG", "info"},
                        {"NCCL_DEBUG_SUBSYS", "^INIT,NET"},
                        {"NCCL_ALGO", "allreduce:ring,tree;broadcast:^ring"},
                        {"NCCL_PROTO", "^LL128"},
                        {"NCCL_IB_DISABLE", "0"},
                        {"NCCL_DMABUF_ENABLE", "1"},
                        {"OMP_NUM_THREADS", "8,2"},
                        {"OMP_PROC_BIND", "spread,close"},
                        {"MPICH_OFI_NIC_POLICY", "round-robin"},
                        {"FI_CXI_OPTIMIZED_MRS", "false"},
                        {"NCCL_NET", "AWS Libfabric"},
                        {"CUDA_VISIBLE_DEVICES", ""},
                        {"MASTER_PORT", "29500"},
                        {"NCCL_CROSS_NIC", "$(choose)"}};
  for (const Finding& finding : lint_environment(right)) ADD_FAILURE() << finding.what;
}

TEST(EnvironmentLint, SeesWhatContradicts) {
  struct Case {
    Variables variables;
    const char* about;  ///< part of the finding
    Severity severity = Severity::warning;
  };
  const std::vector<Case> cases{
      {{{"NCCL_IB_DISABLE", "1"}, {"NCCL_IB_HCA", "mlx5"}}, "NCCL_IB_HCA has no effect"},
      {{{"NCCL_P2P_DISABLE", "1"}, {"NCCL_P2P_LEVEL", "NVL"}}, "NCCL_P2P_LEVEL has no effect"},
      {{{"NCCL_P2P_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "1"}}, "NCCL_SHM_DISABLE=1"},
      {{{"NCCL_NET", "AWS Libfabric"}, {"NCCL_NET_PLUGIN", "none"}}, "NCCL_NET_PLUGIN=none", Severity::error},
      {{{"NCCL_ALGO", "NVLS"}, {"NCCL_NVLS_ENABLE", "0"}}, "NCCL_NVLS_ENABLE=0", Severity::error},
      {{{"UCX_TLS", "tcp,self,sm"}}, "leaves no RDMA"},
      {{{"OMPI_MCA_btl", "self,openib"}, {"OMPI_MCA_pml", "ucx"}}, "openib"},
      {{{"OMPI_MCA_pml", "ob1"}, {"UCX_TLS", "rc,sm"}}, "UCX_TLS has no effect"},
      {{{"FI_MR_CACHE_MONITOR", "memhooks"}, {"FI_CXI_DEFAULT_CQ_SIZE", "131072"}}, "memhooks"},
      {{{"MPICH_GPU_SUPPORT_ENABLED", "0"}}, "FI_CXI_DISABLE_HOST_REGISTER"},
      {{{"FI_CXI_RDZV_PROTO", "alt_read"}}, "alt_read", Severity::note},
      {{{"RANK", "4"}, {"WORLD_SIZE", "4"}}, "RANK=4", Severity::error},
  };
  for (const Case& one : cases) {
    const Finding finding = only_finding(one.variables);
    EXPECT_NE(finding.what.find(one.about), std::string::npos) << finding.what;
    EXPECT_EQ(finding.severity, one.severity) << finding.what;
  }
}

TEST(EnvironmentLint, KnowsSettingsThatGoTogether) {
  const std::vector<Variables> cases{
      {{"NCCL_IB_DISABLE", "0"}, {"NCCL_IB_HCA", "mlx5"}},
      {{"NCCL_IB_DISABLE", "1"}, {"NCCL_IB_HCA", "mlx5"}, {"NCCL_IB_DISABLE", "0"}},  // the last one counts
      {{"NCCL_NET", "Socket"}, {"NCCL_NET_PLUGIN", "none"}},
      {{"UCX_TLS", "rc,tcp,sm"}},
      {{"UCX_TLS", "^tcp"}},
      {{"OMPI_MCA_btl", "^openib"}, {"OMPI_MCA_pml", "ucx"}},
      {{"FI_MR_CACHE_MONITOR", "memhooks"}},
      {{"MPICH_GPU_SUPPORT_ENABLED", "0"},
       {"FI_CXI_DISABLE_HOST_REGISTER", "1"},
       {"MPICH_SMP_SINGLE_COPY_MODE", "NONE"}},
      {{"RANK", "3"}, {"WORLD_SIZE", "4"}},
  };
  for (const Variables& variables : cases)
    for (const Finding& finding : lint_environment(variables)) ADD_FAILURE() << finding.what;
}

TEST(EnvironmentLint, CountsTheNetworkThatTheCallerKnows) {
  const Variables variables{{"FI_MR_CACHE_MONITOR", "memhooks"}};
  EXPECT_NE(only_finding(variables, Fabric::slingshot).what.find("Slingshot"), std::string::npos);
  EXPECT_TRUE(lint_environment(variables, Fabric::infiniband).empty());
}

// So many unknown names take no time: to look for one costs a comparison with all that are known.
TEST(EnvironmentLint, NamesThatAreMeantAreLookedForOfTheFirst200Only) {
  std::vector<Variable> variables{{"NCCL_IB_DISABEL", "1"}};
  for (int i = 0; i < 200; ++i) variables.push_back({"NCCL_IB_SLIP_" + std::to_string(i), "1"});
  variables.push_back({"NCCL_IB_DISABLEE", "1"});
  const auto findings = lint_environment(variables);
  ASSERT_EQ(findings.size(), variables.size());
  EXPECT_EQ(findings.front().fix, "did you mean NCCL_IB_DISABLE?");
  EXPECT_NE(findings.back().fix, "did you mean NCCL_IB_DISABLE?");
}

}  // namespace
}  // namespace lockstep::site
