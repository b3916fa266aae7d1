#include "site/launch.hpp"

#include <algorithm>
#include <array>
#include <utility>

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

constexpr std::pair<std::string_view, Launcher> launchers[]{
    {"srun", Launcher::srun},      {"mpirun", Launcher::mpirun},    {"orterun", Launcher::mpirun},
    {"prterun", Launcher::mpirun}, {"mpiexec", Launcher::mpiexec},  {"mpiexec.hydra", Launcher::mpiexec},
    {"aprun", Launcher::mpiexec},  {"torchrun", Launcher::torchrun}};

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
    const Wrapper* const wrapper = find_by(wrappers, file_name(words[n]), &Wrapper::name);
    if (is_assignment(words[n])) {
      ++n;
    } else if (wrapper == nullptr || asks_for_path(words.subspan(n))) {
      break;
    } else {
      n += 1 + n_of_wrapper(*wrapper, words.subspan(n + 1));
    }
  }
  return std::min(n, words.size());
}

Launcher launcher_of(Words words) {
  if (words.empty()) return Launcher::none;
  const std::string_view first = file_name(words[0]);
  if (words[0] == "launch") return Launcher::launch;
  for (const auto& [program, launcher] : launchers)
    if (first == program) return launcher;
  if (!first.starts_with("python")) return Launcher::none;
  for (std::size_t i = 1; i + 1 < words.size() && words[i].starts_with('-'); ++i) {
    if (words[i] != "-m") continue;
    if (words[i + 1] == "torch.distributed.launch") return Launcher::torch_launch;
    if (words[i + 1] == "torch.distributed.run") return Launcher::torchrun;
  }
  return Launcher::none;
}

OptionSet set_of(Launcher launcher) {
  if (launcher == Launcher::srun) return OptionSet::slurm;
  return launcher == Launcher::mpirun || launcher == Launcher::mpiexec ? OptionSet::mpi : OptionSet::torch;
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
  Words rest = words.subspan(1);
  if (file_name(words[0]).starts_with("python"))  // -m MODULE
    rest = {std::ranges::find(words, "-m") + 2, words.end()};
  std::size_t n_used = 0;
  if (launch.launcher != Launcher::launch) launch.flags = read_flags(rest, set_of(launch.launcher), line, n_used);
  if (n_used < rest.size() && rest[n_used] == "--") ++n_used;
  launch.program.assign(rest.begin() + static_cast<std::ptrdiff_t>(n_used), rest.end());
  return launch;
}

Words unwrapped(Words words) { return words.subspan(n_wrapping(words)); }

bool starts(Words words, std::string_view name) {
  words = unwrapped(words);
  while (!words.empty() && is_expansion(words[0])) words = unwrapped(words.subspan(1));
  if (words.empty() || file_name(words[0]) == name) return !words.empty();
  const bool starts_another =
      is_one_of(file_name(words[0]), starters) || words[0].starts_with("./") || words[0].ends_with(".sh");
  return starts_another && runs(words.subspan(1), name);
}

bool runs(Words words, std::string_view name) {
  return std::ranges::any_of(words, [name](const std::string& word) { return file_name(word) == name; });
}

bool has_word(Words words, std::string_view word) { return std::ranges::find(words, word) != words.end(); }

std::optional<std::string_view> argument(Words words, std::string_view flag) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == flag) return i + 1 < words.size() ? std::string_view{words[i + 1]} : "";
    if (word.starts_with(flag) && word.substr(flag.size()).starts_with('=')) return word.substr(flag.size() + 1);
  }
  return std::nullopt;
}

bool is_mpi_launcher(Launcher launcher) {
  return launcher == Launcher::srun || launcher == Launcher::mpirun || launcher == Launcher::mpiexec;
}

bool starts_ranks(const Launch& launch) {
  return is_mpi_launcher(launch.launcher) || launch.launcher == Launcher::launch;
}

bool is_torch(Launcher launcher) { return launcher == Launcher::torchrun || launcher == Launcher::torch_launch; }

const Flag* flag_of(const Launch& launch, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const Flag* const flag = last_of(launch.flags, name)) return flag;
  return nullptr;
}

std::optional<long> count_of(const Launch& launch, std::initializer_list<std::string_view> names) {
  const Flag* const flag = flag_of(launch, names);
  return flag != nullptr ? whole_number(flag->text()) : std::nullopt;
}

bool is_small_command(const Launch& launch) {
  constexpr std::string_view small =
      "which ldd hostname nvidia-smi echo true mkdir cp rm tar ls cat env date lscpu free sbcast printenv";
  return launch.program.empty() ? launch.variable.empty() : is_one_of(file_name(launch.program.front()), small);
}

}  // namespace lockstep::site
