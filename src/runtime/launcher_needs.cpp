#include "runtime/launcher_needs.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "core/units.hpp"
#include "runtime/environment.hpp"
#include "runtime/launcher.hpp"

namespace lockstep::runtime {
namespace {

using MaybeError = std::optional<core::Error>;

/// The major version in "Open MPI v4.1.4, ..."; 0: it is another MPI, or the user's own launcher, which may not need
/// any of this.
int open_mpi_version(const LauncherFacts& facts) {
  constexpr std::string_view begin = "Open MPI v";
  const std::string name = std::filesystem::path{facts.launcher}.filename().string();
  constexpr std::array<std::string_view, 4> known{"mpirun", "mpiexec", "orterun", "prterun"};
  if (std::ranges::none_of(known, [&name](std::string_view one) { return name.starts_with(one); })) return 0;
  return facts.mpi.starts_with(begin) ? std::atoi(facts.mpi.c_str() + begin.size()) : 0;
}

MaybeError judge_program(const LauncherFacts& facts, int) {
  return facts.refusal.empty() ? MaybeError{} : no_launcher(facts.launcher, facts.refusal);
}

/// Open MPI 4 has room for 64 characters of a name (its issue 13358; 4.1.4 crashes from 57 on).
MaybeError judge_host_name(const LauncherFacts& facts, int) {
  constexpr std::size_t longest = 56;
  const int version = open_mpi_version(facts);
  const std::string used = facts.keeps_domain ? facts.host_name : facts.host_name.substr(0, facts.host_name.find('.'));
  if (version == 0 || version > 4 || used.size() <= longest) return std::nullopt;
  return core::Error{
      core::ExitCode::system,
      {.what = fmt::format("the host name '{}' has {} characters{}: the launcher of Open MPI {} crashes beyond {}",
                           used, used.size(), facts.keeps_domain ? "" : " before its first dot", version, longest),
       .where = "--nproc",
       .expected = fmt::format("a host name of at most {} characters", longest),
       .fix = facts.keeps_domain ? "unset OMPI_MCA_orte_keep_fqdn_hostnames"
                                 : "shorten the host name of the machine, container or pod (hostname NAME; docker run "
                                   "--hostname NAME; spec.hostname), or use Open MPI 5"}};
}

MaybeError judge_home(const LauncherFacts& facts, int) {
  if (open_mpi_version(facts) == 0 || facts.has_user_entry || facts.home) return std::nullopt;
  return core::Error{core::ExitCode::usage,
                     {.what = fmt::format("user {} is not in the system's user database (/etc/passwd), and HOME is not "
                                          "set: the launcher of Open MPI crashes",
                                          facts.user),
                      .where = "HOME",
                      .expected = "a home folder in /etc/passwd or HOME",
                      .fix = "export HOME=/tmp, or another folder that you own"}};
}

/// Up to Open MPI 3 it keeps sockets there, whose paths have at most 107 characters (its issues 2956 and 3798).
MaybeError judge_temporary(const LauncherFacts& facts, int) {
  constexpr std::size_t longest = 107;
  const int version = open_mpi_version(facts);
  const std::string own = fmt::format("/openmpi-sessions-{}@{}_0/65535/0/0", facts.user,
                                      facts.host_name.substr(0, facts.host_name.find('.')));
  if (version == 0 || version > 3 || facts.temporary.size() + own.size() <= longest) return std::nullopt;
  return core::Error{core::ExitCode::usage,
                     {.what = fmt::format("TMPDIR has {} characters: paths of the sockets that the launcher of Open "
                                          "MPI {} makes there would exceed the limit of {}",
                                          facts.temporary.size(), version, longest),
                      .where = "TMPDIR",
                      .expected = fmt::format("at most {} characters", longest - std::min(longest, own.size())),
                      .fix = "export TMPDIR=/tmp"}};
}

/// Open MPI 4.1.4 crashes with 200 KiB or less, MPICH 4.0.2 with 64 KiB or less.
MaybeError judge_stack(const LauncherFacts& facts, int) {
  constexpr std::uint64_t least = std::uint64_t{256} << 10;
  if (facts.stack >= least) return std::nullopt;
  return core::Error{
      core::ExitCode::system,
      {.what = fmt::format("the stack limit is {} KiB: MPI launchers crash with so small a stack", facts.stack >> 10),
       .where = "--nproc",
       .expected = fmt::format("at least {} KiB", least >> 10),
       .fix = "ulimit -s 8192"}};
}

/// Open MPI 4.1.4 needs 32 for 1 rank and 96 for 16; with fewer it hangs, or complains about pipes.
MaybeError judge_open_files(const LauncherFacts& facts, int n_ranks) {
  const std::uint64_t least = 32 + 5 * static_cast<std::uint64_t>(n_ranks);
  if (open_mpi_version(facts) == 0 || facts.open_files >= least) return std::nullopt;
  return core::Error{
      core::ExitCode::system,
      {.what = fmt::format("a process may have {} open files: too few for the launcher of Open MPI and {} rank{}",
                           facts.open_files, n_ranks, n_ranks == 1 ? "" : "s"),
       .where = "--nproc",
       .expected = fmt::format("at least {}", least),
       .fix = "ulimit -n 4096, or as many as the hard limit (ulimit -Hn) allows"}};
}

/// Open MPI 4.1.4 shares what its ranks know of each other by files: with 1 KiB it fails on many lines.
MaybeError judge_file_size(const LauncherFacts& facts, int) {
  constexpr std::uint64_t least = std::uint64_t{64} << 10;
  if (open_mpi_version(facts) == 0 || facts.file_size >= least) return std::nullopt;
  return core::Error{core::ExitCode::system,
                     {.what = fmt::format("the limit of file sizes is {} KiB: too small for the launcher of Open MPI",
                                          facts.file_size >> 10),
                      .where = "--nproc",
                      .expected = fmt::format("at least {} KiB", least >> 10),
                      .fix = "ulimit -f unlimited"}};
}

constexpr std::array needs{LauncherNeed{"program", judge_program},     LauncherNeed{"host name", judge_host_name},
                           LauncherNeed{"home", judge_home},           LauncherNeed{"temporary files", judge_temporary},
                           LauncherNeed{"stack", judge_stack},         LauncherNeed{"open files", judge_open_files},
                           LauncherNeed{"file sizes", judge_file_size}};

std::uint64_t soft_limit(decltype(RLIMIT_STACK) resource) {
  rlimit limit{};
  const bool is_known = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return is_known ? std::uint64_t{limit.rlim_cur} : LauncherFacts::no_limit;
}

std::string text_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

/// As Open MPI reads it: "1", "true", "yes".
bool is_on(const char* variable) {
  const std::string value = text_of(variable);
  return !value.empty() && std::string_view{"1tTyY"}.find(value.front()) != std::string_view::npos;
}

/// As execvp() looks for it; the error number, 0: it can be executed.
int find_refusal(const std::string& launcher) {
  const auto refusal_of = [](const std::filesystem::path& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return EISDIR;
    return access(path.c_str(), X_OK) == 0 ? 0 : errno;
  };
  if (launcher.find('/') != std::string::npos) return refusal_of(launcher);
  const char* const path = std::getenv("PATH");
  std::istringstream folders{path != nullptr ? path : "/bin:/usr/bin"};
  int refusal = ENOENT;
  for (std::string folder; std::getline(folders, folder, ':');) {
    const int error = refusal_of(std::filesystem::path{folder.empty() ? "." : folder} / launcher);
    if (error == 0) return 0;
    if (error == EACCES) refusal = error;
  }
  return refusal;
}

}  // namespace

core::Error no_launcher(const std::string& launcher, const std::string& refusal) {
  return {core::ExitCode::system,
          {.what = fmt::format("cannot start the MPI launcher '{}': {}", launcher, refusal),
           .where = "--nproc",
           .expected = "the launcher of the MPI library this program was built with",
           .fix = "install it (Debian: openmpi-bin for Open MPI, mpich for MPICH), load its module, or name it in "
                  "LOCKSTEP_MPIEXEC"}};
}

LauncherFacts read_launcher_facts() {
  LauncherFacts facts{.launcher = own_launcher(),
                      .mpi = mpi_library_text(),
                      .keeps_domain = is_on("OMPI_MCA_orte_keep_fqdn_hostnames"),
                      .user = geteuid(),
                      .has_user_entry = getpwuid(geteuid()) != nullptr,
                      .home = std::nullopt,
                      .temporary = text_of("TMPDIR"),
                      .stack = soft_limit(RLIMIT_STACK),
                      .open_files = soft_limit(RLIMIT_NOFILE),
                      .file_size = soft_limit(RLIMIT_FSIZE)};
  if (const int error = find_refusal(facts.launcher)) facts.refusal = core::system_reason(error);
  if (const char* const home = std::getenv("HOME")) facts.home = home;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) facts.host_name = name.data();
  return facts;
}

std::string describe(const LauncherFacts& facts) {
  const auto limit = [](std::uint64_t value, const std::string& text) {
    return value == LauncherFacts::no_limit ? "unlimited" : text;
  };
  return fmt::format("host name of {} characters, {}, TMPDIR {}, stack {}, open files {}", facts.host_name.size(),
                     facts.home ? "HOME" : "no HOME", facts.temporary.empty() ? "not set" : "set",
                     limit(facts.stack, core::format_bytes({facts.stack})),
                     limit(facts.open_files, std::to_string(facts.open_files)));
}

std::span<const LauncherNeed> launcher_needs() noexcept { return needs; }

}  // namespace lockstep::runtime
