#include "site/launch.hpp"

#include <algorithm>
#include <array>

#include "site/known_values.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

using Words = std::span<const std::string>;

/// A program that starts another one, whose words follow its own.
struct Wrapper {
  std::string_view name;
  std::string_view flags_with_value = {};
  std::size_t n_values = 0;  ///< words before the program that are no flags
};
constexpr std::array<Wrapper, 11> wrappers{
    {{"exec", "a"},
     {"env", "u unset C chdir"},
     {"time", "f format o output"},
     {"nohup"},
     {"timeout", "s signal k kill-after", 1},
     {"command"},
     {"nice", "n adjustment"},
     {"eval"},
     {"numactl", "N cpunodebind m membind C physcpubind i interleave p preferred w weighted-interleave"},
     {"taskset", "", 1},
     {"stdbuf", "i input o output e error"}}};

// Containers, profilers, debuggers and shells: the program is somewhere among their words.
constexpr std::string_view starters =
    "apptainer singularity shifter podman podman-hpc ch-run enroot bash sh nsys ncu nvprof rocprof hpcrun tau_exec "
    "vtune perf gdb cuda-gdb valgrind compute-sanitizer strace ltrace ddt map hwloc-bind likwid-pin likwid-perfctr "
    "setsid ionice chrt setarch unbuffer";

// Of Open MPI, MPICH and PALS: flags with one value, and with two.
constexpr std::string_view flags_with_value =
    "n np c N npernode npersocket ppn ppr d depth cpu-bind gpu-bind mem-bind map-by bind-to rank-by x H host hosts f "
    "hostfile machinefile hostlist output-filename wdir wd path prefix genvlist envlist launcher bootstrap iface "
    "label-by report-uri mca-file timeout pernode-list rankfile rf cpus-per-rank cpus-per-proc cpu-set cpu-list "
    "exclude-hosts env-file pmi rlimits procs net transfer-list";
constexpr std::string_view torch_flags_alone = "standalone use_env no_python module m u";
constexpr std::string_view flags_with_two_values = "mca gmca omca prtemca pmixmca genv env";

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
}

bool is_assignment(std::string_view word) {
  const std::string_view name = assigned_name(word);
  return !name.empty() && word.size() > name.size() && word[name.size()] == '=';
}

/// command -v and command -V say where a program is, and start nothing.
bool asks_for_path(Words words) {
  return words.size() > 1 && words[0] == "command" && words[1].starts_with('-') &&
         words[1].find_first_of("vV") != std::string::npos;
}

/// Flags and values of `wrapper` at the beginning of `words`.
std::size_t n_of_wrapper(const Wrapper& wrapper, Words words) {
  std::size_t n = 0;
  while (n < words.size() && words[n].starts_with('-')) {
    const std::string_view word = words[n++];
    if (word == "--") break;
    const std::string_view name = word.substr(word.starts_with("--") ? 2 : 1);
    if (is_one_of(name, wrapper.flags_with_value)) ++n;
  }
  return n + wrapper.n_values;
}

/// Words before the launcher that change nothing about it.
std::size_t n_wrapping(Words words) {
  std::size_t n = 0;
  while (n < words.size()) {
    const auto* const wrapper = std::ranges::find(wrappers, base_name(words[n]), &Wrapper::name);
    if (is_assignment(words[n])) {
      ++n;
    } else if (wrapper == wrappers.end() || asks_for_path(words.subspan(n))) {
      break;
    } else {
      n += 1 + n_of_wrapper(*wrapper, words.subspan(n + 1));
    }
  }
  return std::min(n, words.size());
}

Launcher launcher_of(Words words) {
  if (words.empty()) return Launcher::none;
  const std::string_view first = base_name(words[0]);
  if (first == "srun") return Launcher::srun;
  if (first == "mpirun" || first == "orterun" || first == "prterun") return Launcher::mpirun;
  if (first == "mpiexec" || first == "mpiexec.hydra" || first == "aprun") return Launcher::mpiexec;
  if (words[0] == "launch") return Launcher::launch;
  if (first == "torchrun") return Launcher::torchrun;
  if (!first.starts_with("python")) return Launcher::none;
  for (std::size_t i = 1; i + 1 < words.size() && words[i].starts_with('-'); ++i) {
    if (words[i] != "-m") continue;
    if (words[i + 1] == "torch.distributed.launch") return Launcher::torch_launch;
    if (words[i + 1] == "torch.distributed.run") return Launcher::torchrun;
  }
  return Launcher::none;
}

/// Flags of mpirun, mpiexec or torchrun, with one dash or two, up to the program.
std::size_t read_flags_of(Words words, bool is_torch, Launch& launch) {
  std::size_t at = 0;
  while (at < words.size() && words[at].size() > 1 && words[at].starts_with('-')) {
    const std::string_view word = words[at++];
    const std::size_t equals = word.find('=');
    const std::string_view typed = word.substr(0, equals);
    Flag flag{.line = launch.line, .typed = std::string{typed}, .name = std::string{typed}, .value = {}};
    flag.name.erase(0, typed.starts_with("--") ? 2 : 1);
    if (is_torch) std::ranges::replace(flag.name, '-', '_');
    const bool takes_value =
        is_torch ? !is_one_of(flag.name, torch_flags_alone) : is_one_of(flag.name, flags_with_value);
    if (equals != word.npos) {
      flag.value = std::string{word.substr(equals + 1)};
    } else if (!is_torch && is_one_of(flag.name, flags_with_two_values) && at + 1 < words.size()) {
      flag.value = words[at] + "=" + words[at + 1];
      at += 2;
    } else if (takes_value && at < words.size()) {
      flag.value = words[at++];
    }
    launch.flags.push_back(std::move(flag));
  }
  return at;
}

}  // namespace

std::string_view name(Launcher launcher) noexcept {
  constexpr std::array<std::string_view, 7> names{
      "", "srun", "mpirun", "mpiexec", "torchrun", "torch.distributed.launch", "launch"};
  return names[static_cast<std::size_t>(launcher)];
}

std::optional<Launch> read_launch(Words words, int line) {
  words = unwrapped(words);
  Launch launch{.line = line, .launcher = launcher_of(words)};
  if (launch.launcher == Launcher::none) return std::nullopt;
  std::size_t n_used = 1;
  if (launch.launcher == Launcher::srun) {
    launch.flags = read_flags(words.subspan(1), slurm_options(), line, n_used);
    ++n_used;
  } else if (launch.launcher != Launcher::launch) {
    const bool is_torch = launch.launcher == Launcher::torchrun || launch.launcher == Launcher::torch_launch;
    const auto module = std::ranges::find(words, "-m");
    if (base_name(words[0]).starts_with("python") && module != words.end())
      n_used = static_cast<std::size_t>(module - words.begin()) + 2;
    n_used += read_flags_of(words.subspan(std::min(n_used, words.size())), is_torch, launch);
  }
  const Words rest = words.subspan(std::min(n_used, words.size()));
  launch.program.assign(rest.begin(), rest.end());
  if (!launch.program.empty() && launch.program.front() == "--") launch.program.erase(launch.program.begin());
  return launch;
}

Words unwrapped(Words words) { return words.subspan(n_wrapping(words)); }

bool starts(Words words, std::string_view name) {
  words = unwrapped(words);
  while (!words.empty() && is_expansion(words[0])) words = unwrapped(words.subspan(1));
  if (words.empty() || base_name(words[0]) == name) return !words.empty();
  const bool starts_another =
      is_one_of(base_name(words[0]), starters) || words[0].starts_with("./") || words[0].ends_with(".sh");
  return starts_another && runs(words.subspan(1), name);
}

bool runs(Words words, std::string_view name) {
  return std::ranges::any_of(words, [name](const std::string& word) { return base_name(word) == name; });
}

}  // namespace lockstep::site
