#include "training/doctor/doctor.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "core/log.hpp"
#include "core/pending.hpp"
#include "core/print.hpp"
#include "runtime/gpu_choice.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/launcher.hpp"
#include "training/doctor/checks.hpp"
#include "training/doctor/needs.hpp"
#include "training/doctor/report.hpp"
#include "training/doctor/variables.hpp"

namespace lockstep::training::doctor {
namespace {

constexpr std::string_view usage = "lockstep doctor [flags]";

constexpr std::string_view before_flags =
    R"(lockstep doctor [flags]: check, within a minute, what would stop a job or make it slow

  lockstep doctor                            check this machine
  lockstep doctor --nproc 4 --data d         check with four ranks, and the set that they would read
  srun lockstep doctor --expect-ranks "$SLURM_NTASKS" --data d --checkpoints runs --recipe cifar_resnet18
                                             in a job script, before the job: check with its own ranks

)";
constexpr std::string_view after_flags = R"(  -h, --help

Each check has a verdict: ok, note, warning, fail (a job would fail) or skipped. It shows what was seen and, unless the
verdict is ok, a fix. Exit codes: 0 nothing would fail, 1 something would fail, 2 usage, 3 the system or MPI failed (for
example, OMPI_MCA_btl names an unknown component), 4 a rank is stopped or gone (--timeout).
)";

/// A process that another MPI's launcher started as one of several is alone. Only the first speaks. The others end with
/// 0, because launchers end a job at the first other code, before the first process has spoken.
bool is_silent(const runtime::Communicator& world) {
  const runtime::LauncherHint hint = runtime::read_launcher_hint();
  return world.n_ranks() == 1 && hint.n_ranks.value_or(1) > 1 && hint.rank.value_or(0) > 0;
}

void tell(const std::vector<Judged>& all, const Job& job) {
  const std::string& json = job.request.json;
  core::print(json == "-" ? to_json(all, job) : describe(all));
  if (json.empty() || json == "-") return;
  const std::string text = to_json(all, job);
  core::write_whole(json, std::as_bytes(std::span{text}));
}

int run(const Request& request, const runtime::Session& session) {
  const runtime::Communicator& world = session.world();
  if (is_silent(world)) return core::to_int(core::ExitCode::ok);
  const auto complaint = core::complaint_of([&] {
    if (world.rank() == 0 && !request.json.empty() && request.json != "-") core::check_writable(request.json, "--json");
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  const Job job = examine(world, request);
  bool fails = false;
  const auto untold = core::complaint_of([&] {
    if (world.rank() != 0) return;
    const std::vector<Judged> all = judge_all(job);
    fails = would_fail(all);
    tell(all, job);
  });
  if (const auto bad = session.agree(untold)) return core::to_int(*bad);
  if (const int signal = runtime::agree_on_interrupt(world); signal != 0) return 128 + signal;
  return core::to_int(world.any(fails) ? core::ExitCode::failed : core::ExitCode::ok);
}

void declare(core::Flags& flags, const std::shared_ptr<Request>& request, Invocation& invocation) {
  constexpr std::uint64_t most_checkpoints = 1'000'000;
  flags.heading("What to check");
  flags.text("--data SET", request->data, {"open SET on each node, and read up to 256 MB of it", "none"});
  flags.text("--val SET", request->val, {"with --data: check that it has the same classes", "none"});
  flags.text("--checkpoints DIR", request->checkpoints,
             {"check that each node can write, lock and see files there", "none"});
  flags.number("--n-checkpoints K", request->n_checkpoints, std::uint64_t{1}, most_checkpoints,
               "with --checkpoints and --recipe: check for room for K");
  flags.text("--recipe R", request->recipe_word, {"check that R fits the ranks, the set and the memory", "none"});
  flags.value("--device D", {runtime::device_help, request->device}, [request](const std::string& text) {
    request->device = name(core::find_named(runtime::all_device_kinds, text, "device", "--device"));
  });
  flags.toggle("--share-gpu", request->shares_gpu, "ranks of the job may share a GPU");
  flags.heading("Output and ranks");
  flags.text("--json F", request->json, "also write the results to F; -: to stdout, instead of the table");
  declare_launch(flags, invocation);
  flags.hide("--expect-ranks");
  flags.mention("--expect-ranks N", {"check that the launcher started N ranks", "any number"});
}

std::string help_text() {
  core::Flags flags{""};
  Invocation invocation;
  declare(flags, std::make_shared<Request>(), invocation);
  return fmt::format("{}{}{}", before_flags, flags.help(), after_flags);
}

/// Reported first: if MPI does not start, the table is never printed.
void tell_what_stops_mpi() {
  for (const site::Finding& finding : slips_in(read_variables(), site::Fabric::unknown))
    if (finding.severity == site::Severity::error && finding.what.starts_with("OMPI_MCA_"))
      core::log_error(fmt::format("{}; {}\n  fix: {}", finding.what, finding.why, finding.fix));
}

/// Refuses flags that would be silently ignored. `request` must be resolved, because a recipe may name the set.
void check_companions(const core::Flags& flags, const Request& request) {
  const auto need = [](const char* flag, const char* fix) {
    core::fail_usage({.what = fmt::format("{} has no effect alone", flag), .where = flag, .expected = "", .fix = fix});
  };
  if (flags.has("--val") && request.data.empty()) need("--val", "add --data SET, or a --recipe that names one");
  if (flags.has("--n-checkpoints") && (request.checkpoints.empty() || !request.recipe))
    need("--n-checkpoints", "add --checkpoints DIR and --recipe R");
}

}  // namespace

Invocation parse(const std::vector<std::string>& arguments) {
  if (asks_for_help(arguments)) return {.text = help_text()};
  auto request = std::make_shared<Request>();
  Invocation invocation{.judges_launch = true, .alone = runtime::Alone::without_mpi};
  core::Flags flags{std::string{usage}};
  declare(flags, request, invocation);
  flags.parse(arguments);
  resolve(*request);
  check_companions(flags, *request);
  request->expect_ranks = std::exchange(invocation.expect_ranks, 0);  // one of the checks reports it
  invocation.before_mpi = tell_what_stops_mpi;
  invocation.run = [request](const runtime::Session& session, runtime::Watchdog&) { return run(*request, session); };
  return invocation;
}

}  // namespace lockstep::training::doctor
