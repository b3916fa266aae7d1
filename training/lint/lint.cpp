#include "training/lint/lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/pending.hpp"
#include "core/print.hpp"
#include "core/suggest.hpp"
#include "io/file.hpp"
#include "site/script_lint.hpp"
#include "training/lint/report.hpp"
#include "training/lint/shell_syntax.hpp"
#include "training/lint/site_file.hpp"

namespace lockstep::training::lint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view usage = "lockstep lint FILE... [flags]";
constexpr core::Bytes most_text{std::uint64_t{1} << 20};

struct Request {
  std::string first{};
  std::vector<std::string> others{};
  std::string site{};
  std::string json{};
};

std::string help_text() {
  return R"(lockstep lint FILE... [flags]: what would go wrong with a job script, before it is submitted

  lockstep lint job.sbatch                   one script; nothing of it is executed
  lockstep lint batch/*/*.sbatch             many, each of the cluster whose batch/lib/S.sh it reads
  lockstep lint --site delta job.sbatch      against the limits of NCSA Delta

Looks at directives (misspelt, malformed, where no batch system reads them), at what they ask for against what the cluster
documents, at how ranks are started, at variables that nothing reads or that contradict one another, and whether bash can
read the script to its end.
Prints a line FILE:LINE: for each finding: an error (the job is refused, or does not do what it says), a warning (it may
work, but slower or not as meant) or a note; at the end how many, and by the limits of which sites.

      --site S           delta, derecho, ibex, hipergator or generic, which has no limits. Without it, a line
                         "# lockstep: site=S" in the script counts, then the lib/S.sh that it sources, then the name
                         of its folder; where none is a site's it is judged as generic, with a note
      --json F           also as a file (share/schemas/lint-1.schema.json); -: instead of the lines, on stdout
  -h, --help

What clusters document is in share/lockstep/sites.toml (or the file in LOCKSTEP_SITES), with the source of each fact: sites
change, so correct it, or add yours. Exit codes: 0 clean, 1 errors or warnings, 2 usage,
3 the system or MPI failed.
)";
}

const site::Site& require_site(const std::vector<site::Site>& sites, const std::string& name,
                               const std::string& where) {
  return core::find_named(sites, name, "site", where);
}

/// Throws core::Error (usage) if it is no text.
std::string read_script(const std::string& path) {
  std::string text = io::read_text(path, most_text);
  if (text.find('\0') != text.npos)
    core::fail_usage({.what = "not a text file", .where = path, .expected = "a job script of Slurm or PBS", .fix = ""});
  return text;
}

/// Of lines that bash reads and this program does not.
site::Finding of_unread(int line) {
  return {.severity = site::Severity::warning,
          .what = fmt::format("not read from line {} on", line),
          .why = "a quote or bracket opens there whose end was not found: nothing is known of what comes after",
          .fix = "write that line in a simpler way",
          .line = line};
}

site::Finding of_no_site(const std::vector<site::Site>& sites) {
  return {.severity = site::Severity::note,
          .what = "which cluster it is for is not known, so no limits were looked at",
          .why = "it sources no lib/S.sh of a site, has no line '# lockstep: site=S', and its folder is not named so",
          .fix = fmt::format("--site S: one of {}", core::join(core::names_of(sites))),
          .line = 1};
}

Judged judge(const std::string& path, const Request& request, const std::vector<site::Site>& sites) {
  const std::string text = read_script(path);
  const site::JobScript script = site::read_job_script(text);
  std::error_code reason;
  const fs::path absolute = fs::absolute(path, reason);
  const auto mark = site::find_mark(script, "site");
  const std::string known =
      site::site_of(sites, request.site, mark ? mark->text : "", site::sourced_library(script), absolute.string());
  const std::string name = known.empty() ? "generic" : known;
  const site::Site& site =
      require_site(sites, name, request.site.empty() ? fmt::format("{}:{}", path, mark ? mark->line : 1) : "--site");
  const auto exists = [folder = absolute.parent_path()](const std::string& file) {
    std::error_code ignored;
    return fs::exists(folder / file, ignored);
  };
  std::vector<site::Finding> findings = site::lint_script(script, site, exists);
  // Lines of Windows are no syntax either, which is told better.
  const auto broken = script.dos_line == 0 ? find_syntax_error(path, text) : std::nullopt;
  const auto insert = [&findings](const site::Finding& finding) {
    findings.insert(std::ranges::upper_bound(findings, finding.line, {}, &site::Finding::line), finding);
  };
  if (broken) insert(*broken);
  if (!broken && script.open_line != 0 && is_for_bash(text)) insert(of_unread(script.open_line));
  if (known.empty()) findings.insert(findings.begin(), of_no_site(sites));
  return {path, name, std::move(findings)};
}

void tell(const std::vector<Judged>& all, const std::string& json) {
  core::print(json == "-" ? to_json(all) : describe(all));
  if (json.empty() || json == "-") return;
  const std::string text = to_json(all);
  core::write_whole(json, std::as_bytes(std::span{text}));
}

core::ExitCode lint(const Request& request) {
  if (!request.json.empty() && request.json != "-") core::check_writable(request.json, "--json");
  const std::string file = find_site_file();
  const std::vector<site::Site> sites = read_sites(io::read_text(file, most_text), file);
  if (!request.site.empty()) require_site(sites, request.site, "--site");
  std::vector<Judged> all{judge(request.first, request, sites)};
  for (const std::string& path : request.others) all.push_back(judge(path, request, sites));
  tell(all, request.json);
  return is_clean(all) ? core::ExitCode::ok : core::ExitCode::failed;
}

/// Collective: rank 0 does it.
int run(const Request& request, const runtime::Session& session) {
  core::ExitCode code = core::ExitCode::ok;
  const auto complaint = core::complaint_of([&] {
    if (session.world().rank() == 0) code = lint(request);
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return core::to_int(session.world().any(code == core::ExitCode::failed) ? core::ExitCode::failed
                                                                          : core::ExitCode::ok);
}

Action declare(core::Flags& flags) {
  auto request = std::make_shared<Request>();
  flags.word("FILE", request->first);
  flags.words("FILE", request->others, 0);
  flags.text("--site", request->site);
  flags.text("--json", request->json);
  return {.check = {}, .run = [request](const runtime::Session& session) { return run(*request, session); }};
}

}  // namespace

Invocation parse(const std::vector<std::string>& arguments) {
  if (asks_for_help(arguments)) return {.text = help_text()};
  return make_invocation(std::string{usage}, declare, arguments);
}

}  // namespace lockstep::training::lint
