#include "unit/training/doctor/fixture.hpp"

namespace lockstep::training::doctor {
namespace {

/// One of `n` processes that another MPI's launcher has started.
Job alone_of(int n, const std::string& launcher, const std::string& library, const std::string& pmi) {
  Job job = healthy_job(1, 1);
  Facts& facts = job.ranks.front();
  facts.launcher = launcher;
  facts.launched_ranks = n;
  facts.mpi_library = library;
  facts.pmi = {pmi};
  return job;
}

TEST(DoctorLauncher, TellsRanksAndNodes) {
  expect(check_launcher(healthy_job(2, 3)), Verdict::ok, "Open MPI mpirun, 6 ranks on 2 nodes");
  Job job = healthy_job(1, 1);
  job.ranks.front().launcher.clear();
  job.ranks.front().launched_ranks = -1;
  expect(check_launcher(job), Verdict::ok, "no launcher, 1 rank on 1 node");
}

TEST(DoctorLauncher, RefusesAnotherNumberThanExpected) {
  Job job = healthy_job(2, 2);
  job.request.expect_ranks = 4;
  expect(check_launcher(job), Verdict::ok, "4 ranks");
  job.request.expect_ranks = 8;
  expect(check_launcher(job), Verdict::fail, "4 ranks on 2 nodes instead of the 8", "launcher of the MPI");
}

TEST(DoctorLauncher, KnowsMixedMpisInBothDirections) {
  const Job hydra = alone_of(4, "Hydra mpiexec", open_mpi_text, "PMI");
  expect(
      check_launcher(hydra), Verdict::fail,
      "Hydra mpiexec started 4 processes, but each runs as a single rank: this program is built with Open MPI v4.1.4",
      "start it by /usr/bin/mpirun");
  expect(check_pmi(hydra), Verdict::fail, "offers PMI, but Open MPI v4.1.4 does not use it", "/usr/bin/mpirun");
  const Job mpirun = alone_of(4, "Open MPI mpirun", mpich_text, "PMIx");
  expect(check_launcher(mpirun), Verdict::fail, "built with MPICH Version: 4.0.2", "the launcher of that MPI");
  expect(check_pmi(mpirun), Verdict::fail, "offers PMIx, but MPICH Version: 4.0.2 does not use it");
}

TEST(DoctorLauncher, NamesThePluginOfSlurm) {
  expect(check_launcher(alone_of(4, "Slurm srun", open_mpi_text, "PMI")), Verdict::fail, "Slurm srun", "--mpi=pmix");
  expect(check_launcher(alone_of(4, "Slurm srun", mpich_text, "PMIx")), Verdict::fail, "Slurm srun", "--mpi=pmi2");
}

TEST(DoctorLauncher, ComparesWithTheBatchSystem) {
  Job job = healthy_job(1, 2);
  job.ranks.front().slurm_tasks = 2;
  expect(check_launcher(job), Verdict::ok, "2 ranks");
  job.ranks.front().slurm_tasks = 8;
  expect(check_launcher(job), Verdict::warning, "2 ranks on 1 node, but Slurm was asked for 8 tasks", "--ntasks");
  job.ranks.front().slurm_tasks = -1;
  job.ranks.front().pbs_lines = 4;
  expect(check_launcher(job), Verdict::warning, "PBS_NODEFILE has 4 lines", "hostfile");
  job.ranks.front().pbs_complaint = "cannot read 'fifo': it is not a regular file";
  expect(check_launcher(job), Verdict::warning, "PBS_NODEFILE: cannot read 'fifo'", "unset PBS_NODEFILE");
  job = healthy_job(1, 1);
  job.ranks.front().launcher.clear();
  job.ranks.front().slurm_tasks = 8;
  expect(check_launcher(job), Verdict::note, "no launcher, so 1 rank", "srun lockstep doctor");
}

TEST(DoctorOwnLauncher, TellsWhatItDiesOf) {
  Job job = healthy_job(2, 2);
  for (Facts& facts : job.ranks) facts.node.launcher = "stack 8 MiB";
  expect(check_own_launcher(job), Verdict::ok, "/usr/bin/mpirun: stack 8 MiB");
  job.ranks[2].node.obstacles = {{"the host name is long", "a shorter one"}, {"a small stack", "ulimit -s 8192"}};
  expect(check_own_launcher(job), Verdict::note, "the host name is long\na small stack",
         "a shorter one; ulimit -s 8192");
  for (Facts& facts : job.ranks) facts.launcher = "";
  expect(check_own_launcher(job), Verdict::fail, "node1");
}

TEST(DoctorPmi, IsProvenByRanksThatHaveFoundOneAnother) {
  expect(check_pmi(healthy_job(1, 2)), Verdict::ok, "offers PMIx; Open MPI v4.1.4 found all ranks");
  Job job = healthy_job(1, 1);
  job.ranks.front().launcher.clear();
  job.ranks.front().pmi.clear();
  expect(check_pmi(job), Verdict::skipped, "not checked: no launcher");
}

TEST(DoctorBinding, WarnsOfRanksThatRoam) {
  expect(check_binding(healthy_job(2, 2)), Verdict::ok, "each bound to its own core");
  Job job = healthy_job(2, 2);
  for (runtime::Place& place : job.topology.places) {
    place.cpus = {0, 1};
    place.core = -1;
  }
  expect(check_binding(job), Verdict::warning, "2 of 2 ranks on node0 not bound", "--bind-to core");
  expect(check_binding(job), Verdict::warning, "(likewise on 1 other node)");
}

TEST(DoctorBinding, RefusesRanksBoundToTheSameCores) {
  Job job = healthy_job(1, 3);
  job.topology.places[2].cpus = {1};
  job.topology.places[2].core = 1;
  job.topology.places[0].cpus = {0, 2};
  job.topology.places[0].core = -1;
  expect(check_binding(job), Verdict::fail, "ranks 1 and 2 share core 1", "srun --cpu-bind=cores");
}

TEST(DoctorBinding, RefusesRanksConfinedToAPartOfTheNode) {
  Job job = healthy_job(1, 2);
  for (runtime::Place& place : job.topology.places) {
    place.cpus = {0};
    place.core = 0;
  }
  job.topology.cpus_per_node = {1};
  expect(check_binding(job), Verdict::fail, "2 ranks on 1 processor", "--cpus-per-task");
  job.ranks.front().node.n_cpus = 1;  // it has no more
  expect(check_binding(job), Verdict::warning, "2 ranks on 1 processor", "start at most 1 rank per node");
}

TEST(DoctorBinding, CountsTheThreadsOfTheRecipe) {
  Job job = healthy_job(1, 2);
  job.need = Need{.recipe = {.threads = 4}};
  expect(check_binding(job), Verdict::warning, "2 ranks with 4 threads each on 2 processors", "use fewer threads");
}

TEST(DoctorQuota, ComparesWithRanksAndThreads) {
  Job job = healthy_job(1, 2);
  expect(check_quota(job), Verdict::ok, "no limit");
  job.ranks.front().node.cpu_quota = 2;
  expect(check_quota(job), Verdict::ok, "allows 2 processors");
  job.ranks.front().node.cpu_quota = 1.5;
  expect(check_quota(job), Verdict::warning, "allows 1.5 processors, but ranks keep 2 busy", "ask for more processors");
}

TEST(DoctorFabric, IsNotBetweenRanksOfOneNode) {
  expect(check_fabric(healthy_job(1, 2)), Verdict::skipped, "not checked: one node", "");
  expect(check_fabric(healthy_job(1, 2)), Verdict::skipped, "InfiniBand mlx5_0/1 200 Gb/s");
}

TEST(DoctorFabric, IsComparedWithWhatMpiUses) {
  Job job = healthy_job(2, 1);
  expect(check_fabric(job), Verdict::ok, "MPI uses UCX (OMPI_MCA_pml=ucx)");
  std::map<std::string, std::string>& variables = job.ranks.front().variables;
  variables = {{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "self,vader,tcp"}};
  expect(check_fabric(job), Verdict::warning, "MPI uses sockets (OMPI_MCA_pml=ob1",
         "unset the variable that selects TCP");
  variables = {{"UCX_TLS", "tcp,sm,self"}};
  expect(check_fabric(job), Verdict::warning, "MPI uses sockets (UCX_TLS=tcp,sm,self)");
  variables = {{"UCX_TLS", "tcp,cuda_copy"}};
  expect(check_fabric(job), Verdict::warning, "MPI uses sockets (UCX_TLS=tcp,cuda_copy)");
  variables = {{"UCX_TLS", "rc,tcp"}, {"OMPI_MCA_pml", "ucx"}};
  expect(check_fabric(job), Verdict::ok, "MPI uses UCX");
  variables.clear();
  expect(check_fabric(job), Verdict::note, "MPI does not report which of them it uses", "reduce_all");
  job.ranks.front().libraries.push_back({.name = "mca_pml_ucx.so"});
  expect(check_fabric(job), Verdict::ok, "mca_pml_ucx is loaded");
  job.ranks.front().libraries = {{.name = "mca_pml_ob1.so"}, {.name = "mca_btl_tcp.so"}};
  expect(check_fabric(job), Verdict::warning, "mca_pml_ob1 with mca_btl_tcp is loaded");
}

TEST(DoctorFabric, KnowsWhatMpichIsBuiltFor) {
  Job job = healthy_job(2, 1);
  Facts& facts = job.ranks.front();
  facts.variables.clear();
  facts.mpi_library = mpich_text;
  expect(check_fabric(job), Verdict::ok, "MPI uses libfabric (MPICH is built as ch4:ofi)");
  facts.variables = {{"FI_PROVIDER", "tcp"}};
  expect(check_fabric(job), Verdict::warning, "MPI uses sockets (FI_PROVIDER=tcp)");
  facts.variables = {{"FI_PROVIDER", "cxi"}};
  expect(check_fabric(job), Verdict::ok, "FI_PROVIDER=cxi");
}

TEST(DoctorFabric, ThatIsDownOrDifferentIsTold) {
  Job job = healthy_job(3, 1);
  job.ranks[1].node.ports.front().gbps = 100;
  expect(check_fabric(job), Verdict::warning, "200 Gb/s on node0, node2; InfiniBand mlx5_0/1 100 Gb/s on node1",
         "--exclude");
  for (Facts& facts : job.ranks) facts.node.ports.front() = {.name = "mlx5_0/1", .kind = "InfiniBand", .gbps = 200};
  expect(check_fabric(job), Verdict::warning, "no fast port is up", "ibstat");
  for (Facts& facts : job.ranks)
    facts.node.ports = {{.name = "eth0", .kind = "Ethernet", .is_active = true, .gbps = 10}};
  expect(check_fabric(job), Verdict::ok, "Ethernet eth0 10 Gb/s; there is no faster fabric");
}

}  // namespace
}  // namespace lockstep::training::doctor
