#include "runtime/environment.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <fstream>

#include "core/instruction_sets.hpp"
#include "core/version.hpp"
#include "runtime/communicator_mpi.hpp"
#include "runtime/session.hpp"

namespace lockstep::runtime {
namespace {

constexpr std::array allowed_names{"OMP_NUM_THREADS",      "OMP_PROC_BIND",      "OMP_PLACES",          "SLURM_JOB_ID",
                                   "SLURM_JOB_NUM_NODES",  "SLURM_NTASKS",       "SLURM_JOB_PARTITION", "PBS_JOBID",
                                   "CUDA_VISIBLE_DEVICES", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};
constexpr std::array allowed_prefixes{"OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "MPIR_CVAR_", "MPICH_",
                                      "UCX_",      "FI_",       "NCCL_",     "PALS_",      "LOCKSTEP_"};
/// Parts of names, in upper case. Variables whose names have one of those up to AUTH may be secrets; by the others,
/// launchers talk to their processes.
constexpr std::array forbidden_parts{"KEY",    "TOKEN",          "SECRET",        "PASS",         "CRED",
                                     "AUTH",   "OMPI_MCA_ORTE_", "OMPI_MCA_ESS_", "PRECONDITION", "URI",
                                     "TMPDIR", "SPOOL",          "WDIR"};

std::string read_first_line(const char* path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line.empty() ? "unknown" : line;
}

std::string read_cpu_model() {
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

/// The word in brackets of "always [madvise] never".
std::string read_transparent_huge_pages() {
  const std::string line = read_first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']');
  return open < close && close != std::string::npos ? line.substr(open + 1, close - open - 1) : "unknown";
}

std::string read_kernel() {
  utsname names{};
  return uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.release) : "unknown";
}

std::string read_mpi_library() {
  const std::string all = mpi_library_text();
  std::string line = all.substr(0, all.find('\n'));
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

std::string read_mpi_standard() {
  int version = 0;
  int subversion = 0;
  check_mpi(MPI_Get_version(&version, &subversion), "MPI_Get_version");
  return fmt::format("{}.{}", version, subversion);
}

std::string read_mpi_thread_level() {
  int is_started = 0;
  check_mpi(MPI_Initialized(&is_started), "MPI_Initialized");
  if (is_started == 0) return "not started";
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  switch (level) {
    case MPI_THREAD_MULTIPLE: return "multiple";
    case MPI_THREAD_SERIALIZED: return "serialized";
    case MPI_THREAD_FUNNELED: return "funneled";
    default: return "single";
  }
}

/// Collective: returns the host of each node's first rank, in node order, at rank 0.
std::vector<std::string> gather_hosts(const Communicator& world) {
  const bool is_first_on_node = world.split_shared()->rank() == 0;
  std::vector<std::string> hosts = world.gather(is_first_on_node ? host_name() : std::string{});
  std::erase(hosts, std::string{});
  return hosts;
}

std::vector<std::pair<std::string, std::string>> read_variables() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !is_recordable(text.substr(0, equals))) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

}  // namespace

bool is_recordable(std::string_view variable) {
  const bool is_allowed =
      std::find(allowed_names.begin(), allowed_names.end(), variable) != allowed_names.end() ||
      std::any_of(allowed_prefixes.begin(), allowed_prefixes.end(), [&](auto p) { return variable.starts_with(p); });
  std::string upper{variable};
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return is_allowed && std::none_of(forbidden_parts.begin(), forbidden_parts.end(),
                                    [&](auto part) { return upper.find(part) != std::string::npos; });
}

std::string mpi_library_text() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check_mpi(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  return text.data();
}

Environment read_environment(const Communicator& world) {
  Environment e = read_environment();
  e.hosts = gather_hosts(world);
  return e;
}

Environment read_environment() {
  Environment e;
  e.time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  e.lockstep = core::version();
  e.compiler = core::compiler();
  e.build_type = core::build_type();
  e.mpi_library = read_mpi_library();
  e.mpi_standard = read_mpi_standard();
  e.mpi_thread_level = read_mpi_thread_level();
  e.cpu_model = read_cpu_model();
  e.instruction_set = core::widest(core::instruction_sets());
  e.governor = read_first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  e.kernel = read_kernel();
  e.transparent_huge_pages = read_transparent_huge_pages();
  e.page_bytes = sysconf(_SC_PAGESIZE);
  e.variables = read_variables();
  return e;
}

}  // namespace lockstep::runtime
