// Facts that each rank collects and sends to rank 0.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/version.hpp"
#include "io/digest.hpp"
#include "io/file.hpp"
#include "runtime/environment.hpp"
#include "runtime/launcher.hpp"
#include "runtime/launcher_needs.hpp"
#include "runtime/memory.hpp"
#include "runtime/process.hpp"
#include "runtime/session.hpp"
#include "training/doctor/asked.hpp"
#include "training/doctor/files.hpp"
#include "training/doctor/gpus.hpp"
#include "training/doctor/job.hpp"
#include "training/doctor/meeting.hpp"
#include "training/doctor/needs.hpp"
#include "training/doctor/system.hpp"
#include "training/doctor/variables.hpp"

namespace lockstep::training::doctor {
namespace {

namespace fs = std::filesystem;

/// The most names that one node looks up.
constexpr std::size_t most_names = 64;
/// For names and file systems together, which are asked at the same time.
constexpr core::Seconds patience{10};

/// Returns -1 if it is not set, or not a number.
int read_number(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return -1;
  const std::string_view all{text};
  int value = -1;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  return error == std::errc{} && end == all.data() + all.size() ? value : -1;
}

/// Counts the lines of PBS_NODEFILE, one per rank; if it exists but cannot be read, keeps the reason.
void count_pbs_lines(Facts& facts) {
  constexpr core::Bytes most{std::uint64_t{64} << 20};  // of a million ranks
  const char* const path = std::getenv("PBS_NODEFILE");
  std::error_code unknown;
  if (path == nullptr || !fs::exists(path, unknown)) return;
  std::string text;
  const auto complaint = core::complaint_of([&] { text = io::read_text(path, most); });
  if (complaint) {
    facts.pbs_complaint = complaint->problem().what;
    return;
  }
  std::istringstream lines{text};
  facts.pbs_lines = 0;
  for (std::string line; std::getline(lines, line);) facts.pbs_lines += line.empty() ? 0 : 1;
}

/// Reads the initial environment of the process, because Open MPI adds to it if the process is alone.
std::vector<std::string> read_pmi() {
  const auto is_offered = [](const char* variable) { return runtime::was_started_with(getpid(), variable); };
  std::vector<std::string> offers;
  if (is_offered("PMIX_RANK") || is_offered("PMIX_NAMESPACE")) offers.emplace_back("PMIx");
  if (is_offered("PMI_RANK") || is_offered("PMI_FD")) offers.emplace_back("PMI");
  return offers;
}

std::uint64_t limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : unlimited;
}

Limits read_limits() {
  const runtime::LimitsLeft left = runtime::limits_left();
  return {.locked_memory = limit_of(RLIMIT_MEMLOCK),
          .open_files = limit_of(RLIMIT_NOFILE),
          .stack = limit_of(RLIMIT_STACK),
          .core_file = limit_of(RLIMIT_CORE),
          .address_space_left = left.address_space,
          .data_left = left.data};
}

/// Lists them with size and time of each file.
std::vector<Library> read_libraries() {
  std::ifstream maps{"/proc/self/maps"};
  std::stringstream text;
  text << maps.rdbuf();
  std::vector<Library> libraries = find_libraries(text.str());
  for (Library& library : libraries) {
    struct stat status {};
    if (stat(library.path.c_str(), &status) != 0) continue;
    library.bytes = static_cast<std::uint64_t>(status.st_size);
    library.modified = status.st_mtim.tv_sec;
  }
  return libraries;
}

/// Returns nothing if it cannot be read.
std::string digest_program() {
  std::string digest;
  static_cast<void>(core::complaint_of([&digest] { digest = io::digest_of_file("/proc/self/exe"); }));
  return digest;
}

void tell_of_launcher(Facts& facts) {
  const runtime::LauncherHint hint = runtime::read_launcher_hint();
  facts.launcher = hint.name;
  facts.launched_rank = hint.rank.value_or(-1);
  facts.launched_ranks = hint.n_ranks.value_or(std::max(read_number("PMI_SIZE"), read_number("OMPI_COMM_WORLD_SIZE")));
  facts.slurm_tasks = read_number("SLURM_STEP_NUM_TASKS");  // a step may have fewer than the job
  if (facts.slurm_tasks < 0) facts.slurm_tasks = read_number("SLURM_NTASKS");
  count_pbs_lines(facts);
  facts.pmi = read_pmi();
  facts.own_launcher = runtime::own_launcher();
  facts.mpi_library = runtime::mpi_library_text();
}

std::string read_cpu_model(const fs::path& root) {
  std::ifstream file{root / "proc/cpuinfo"};
  for (std::string line; std::getline(file, line);)
    if (const std::size_t colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  return "";
}

void tell_of_shared_memory(NodeFacts& node) {
  struct statvfs status {};
  if (statvfs("/dev/shm", &status) != 0) return;
  node.shm_size = std::uint64_t{status.f_blocks} * status.f_frsize;
  node.shm_free = std::uint64_t{status.f_bavail} * status.f_frsize;
}

void tell_of_own_launcher(NodeFacts& node, int n_local) {
  const runtime::LauncherFacts facts = runtime::read_launcher_facts();
  node.launcher = runtime::describe(facts);
  for (const runtime::LauncherNeed& need : runtime::launcher_needs())
    if (const auto error = need.judge(facts, n_local))
      node.obstacles.push_back({.what = error->problem().what, .fix = error->problem().fix});
}

void tell_of_system(NodeFacts& node, const fs::path& root) {
  utsname names{};
  if (uname(&names) == 0) node.kernel = std::string{names.sysname} + " " + names.release;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) node.name = host.data();
  node.cpu_model = read_cpu_model(root);
  node.n_cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  node.n_numa = count_numa_nodes(root);
  node.governors = read_governors(root);
  node.huge_pages = read_huge_pages(root);
  node.numa_balancing = read_numa_balancing(root);
  node.cpu_quota = read_cpu_quota(root);
  node.memory = runtime::available_memory().value;
  node.ports = read_ports(root);
  node.gpus = read_gpus(root);
  tell_of_shared_memory(node);
}

std::string no_answer(const std::string& path) {
  return fmt::format("'{}' did not answer within {:.0f} s", path, patience.value);
}

/// Questions of a rank, and of the first rank of a node, to file systems and drivers, all at the same time.
class FileQuestions {
 public:
  /// `node`: its number; below 0: this rank is not the first of its node.
  FileQuestions(const Request& request, int node) : request_{request}, node_{node} {
    if (node < 0) return;
    temporary_.emplace([] { return use_temporary_folder(); });
    const bool is_first = node == 0;
    if (!request.data.empty()) data_.emplace([folder = request.data, is_first] { return open_set(folder, is_first); });
    if (!request.val.empty() && is_first) val_.emplace([folder = request.val] { return open_set(folder, false); });
    if (!request.checkpoints.empty())
      checkpoints_.emplace([folder = request.checkpoints] { return use_folder(folder); });
  }

  void answer(Facts& facts) {
    facts.digest = digest_.within(patience).value_or("");
    facts.gpus = gpus_.within(patience).value_or(
        GpuFacts{.obstacle = fmt::format("the NVIDIA driver did not answer within {:.0f} s", patience.value),
                 .fix = "run nvidia-smi on this node for details, or exclude the node (srun --exclude)",
                 .toolkit = "unknown"});
    facts.libraries = libraries_.within(patience).value_or(std::vector<Library>{});
    if (temporary_) {
      const auto used =
          temporary_->within(patience).value_or(TemporaryFacts{.complaint = "a folder that does not answer"});
      facts.temporary = used.complaint;
      facts.missing_temporary = used.missing;
    }
    if (checkpoints_)
      facts.node.checkpoints = checkpoints_->within(patience).value_or(
          FolderFacts{.complaint = no_answer(request_.checkpoints), .path = request_.checkpoints});
    if (data_) facts.node.data = answer(*data_, request_.data);
    if (val_) facts.node.val = answer(*val_, request_.val);
    if (data_ && facts.node.data.complaint.empty()) measure(facts.node.data);
    if (node_ > 0) facts.node.data.classes.clear();  // only those of the first node are reported
  }

 private:
  static SetFacts answer(Asked<SetFacts>& asked, const std::string& folder) {
    return asked.within(patience).value_or(
        SetFacts{.complaint = no_answer(folder), .fix = "check that its file server is up: ls " + folder});
  }

  /// Each node reads other shards, as the nodes of a training do.
  void measure(SetFacts& set) const {
    const auto first = static_cast<std::uint64_t>(node_) * 7;
    Asked<SetFacts> asked{[folder = request_.data, first] { return read_sample(folder, first); }};
    const auto sample = asked.within({reading.value + patience.value / 2});
    set.unread = sample ? sample->unread : "the file system delivers no data";
    if (!sample) return;
    set.n_read = sample->n_read;
    set.seconds = sample->seconds;
    set.cached_percent = sample->cached_percent;
  }

  const Request& request_;
  int node_;
  Asked<std::string> digest_{digest_program};
  Asked<std::vector<Library>> libraries_{read_libraries};
  Asked<GpuFacts> gpus_{look_at_gpus};
  std::optional<Asked<TemporaryFacts>> temporary_{};
  std::optional<Asked<SetFacts>> data_{};
  std::optional<Asked<SetFacts>> val_{};
  std::optional<Asked<FolderFacts>> checkpoints_{};
};

/// Names for node `number` to look up: those after it, cyclically.
std::vector<std::string> names_for(const std::vector<std::string>& names, std::size_t number) {
  std::vector<std::string> others;
  for (std::size_t i = 1; i < names.size() && others.size() < most_names; ++i)
    others.push_back(names[(number + i) % names.size()]);
  return others;
}

/// Collective: the full host name of each node, everywhere.
std::vector<std::string> share_names(const runtime::Communicator& world, const Facts& mine) {
  std::string all;
  for (const std::string& name : world.gather(mine.node.name))
    if (!name.empty()) all += name + '\n';
  std::istringstream lines{world.broadcast(all)};
  std::vector<std::string> names;
  for (std::string name; std::getline(lines, name);) names.push_back(name);
  return names;
}

/// Collective: gathers the facts of each rank at rank 0.
std::vector<Facts> gather_facts(const runtime::Communicator& world, const Facts& mine) {
  std::vector<Facts> all;
  for (const std::string& text : world.gather(to_text(mine))) all.push_back(facts_from_text(text));
  return all;
}

/// The folder whose files all nodes should see.
std::string place_to_meet(const runtime::Communicator& world, const Facts& mine) {
  const bool is_usable = world.rank() == 0 && mine.node.checkpoints.complaint.empty();
  return world.broadcast(is_usable ? mine.node.checkpoints.path : std::string{});
}

Facts tell_of_rank() {
  Facts facts;
  facts.host = runtime::host_name();
  facts.version = core::version();
  facts.limits = read_limits();
  facts.variables = read_variables();
  tell_of_launcher(facts);
  return facts;
}

}  // namespace

std::vector<const Facts*> Job::nodes() const {
  std::vector<const Facts*> first;
  for (const Facts& facts : ranks)
    if (facts.has_node) first.push_back(&facts);
  return first;
}

std::uint64_t Job::n_local(std::size_t node) const {
  return static_cast<std::uint64_t>(std::ranges::count(topology.places, static_cast<int>(node), &runtime::Place::node));
}

Job examine(const runtime::Communicator& world, const Request& request) {
  Job job{.request = request, .topology = runtime::discover_topology(world)};
  const runtime::Place& me = job.topology.places[static_cast<std::size_t>(world.rank())];
  Facts mine = tell_of_rank();
  mine.has_node = me.local_rank == 0;
  FileQuestions questions{request, mine.has_node ? me.node : -1};
  if (mine.has_node) tell_of_system(mine.node, request.root);
  if (mine.has_node) tell_of_own_launcher(mine.node, static_cast<int>(job.n_local(static_cast<std::size_t>(me.node))));
  questions.answer(mine);
  const std::vector<Skew> skews = compare_clocks(world);
  const std::vector<std::string> names = share_names(world, mine);
  if (mine.has_node) {
    const Resolved resolved = resolve(names_for(names, static_cast<std::size_t>(me.node)));
    mine.node.n_resolved = resolved.n;
    mine.node.unresolved = resolved.unresolved;
  }
  if (const std::string folder = place_to_meet(world, mine); !folder.empty())
    mine.node.checkpoints.meeting = meet_in(world, folder, mine.has_node);
  job.ranks = gather_facts(world, mine);
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    job.ranks[rank].node.clock_low = skews[rank].low;
    job.ranks[rank].node.clock_high = skews[rank].high;
  }
  if (world.rank() == 0 && request.recipe) reckon(job);
  return job;
}

std::string name_rank(const Job& job, std::size_t rank) {
  return "rank " + std::to_string(rank) + " (" + job.ranks[rank].host + ")";
}

}  // namespace lockstep::training::doctor
