#include "training/lint/lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "core/pending.hpp"
#include "core/print.hpp"
#include "core/printable.hpp"
#include "core/suggest.hpp"
#include "io/file.hpp"
#include "site/script_lint.hpp"
#include "site/text.hpp"
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
  bool without_shellcheck = false;
};

struct Judged {
  std::string file{};
  std::string site{};
  std::vector<site::Finding> findings{};
  std::string shellcheck{};  ///< as ShellCheck::state
};

constexpr std::string_view before_flags =
    R"(lockstep lint FILE... [flags]: find errors in job scripts before they are submitted

  lockstep lint job.sbatch                   check one script; it is not executed
  lockstep lint batch/*/*.sbatch             check many; each one's site comes from the batch/lib/S.sh that it sources
  lockstep lint --site delta job.sbatch      check against the limits of NCSA Delta

It checks:
  - directives: misspelt, malformed, obsolete, mutually exclusive, or where the batch system does not read them
  - requests, compared with the cluster's documents; traps, and the signals that reach them
  - how ranks are started, and how they find each other on several nodes
  - variables that nothing reads or sets, that contradict one another, or are expanded before ranks exist
  - whether bash can parse the whole script, and characters that only look like keyboard characters
  - other errors of the shell, by ShellCheck if it is installed: its errors are errors, its warnings notes
A script may have at most 1 MiB. Beyond 50,000 words, 1000 directives, 20 levels of quotes and brackets, 500 findings
and 100 of ShellCheck the rest is left out, and lint says so. Prints FILE:LINE: for each finding: an error (refused, or
not what it says), a warning (it may work, but slower or not as meant) or a note. The last line has their number, the
sites whose limits were used, and whether ShellCheck is missing or failed.

)";
constexpr std::string_view after_flags = R"(  -h, --help

share/lockstep/sites.toml (or the file in LOCKSTEP_SITES) has what clusters document, with the source of each fact.
Sites change, so correct it, or add yours. Exit codes: 0 no errors or warnings, 1 errors or warnings, 2 usage, 3 the
system or MPI failed.
)";

/// Throws core::Error (usage) if it is no text.
std::string read_script(const std::string& path) {
  std::string text = io::read_text(path, most_text);
  const auto refuse = [&path](std::string what, std::string fix) {
    core::fail_usage(
        {.what = std::move(what), .where = path, .expected = "a job script of Slurm or PBS", .fix = std::move(fix)});
  };
  if (std::ifstream file{path}; text.empty() && (file.peek() != std::ifstream::traits_type::eof() || file.bad()))
    refuse("the file cannot be read, or the system does not say its size", "copy its content to a file first");
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    refuse("a text in UTF-16 (it begins with the byte order mark U+FEFF)", "iconv -f UTF-16 -t UTF-8 FILE");
  if (text.find('\0') != text.npos) refuse("not a text file", "");
  return text;
}

/// Tells that lines are left out that bash reads.
site::Finding of_unread(int line, bool is_full) {
  return {.severity = site::Severity::warning,
          .what = fmt::format("not read from line {} on", line),
          .why = is_full ? "it has more directives, words or launches, or deeper brackets, than any job script"
                         : "a quote or bracket opens there, and lint does not find where it ends",
          .fix = is_full ? "move what is not part of the job into another script" : "write that line in a simpler way",
          .line = line};
}

site::Finding of_no_site(const std::vector<site::Site>& sites) {
  return {
      .severity = site::Severity::note,
      .what = "the cluster is unknown, so no limits of a site were checked",
      .why = "it sources no lib/S.sh of a site, has no line '# lockstep: site=S', and no site has its folder's name",
      .fix = fmt::format("--site S: one of {}", core::join(core::names_of(sites))),
      .line = 1};
}

Judged judge(const std::string& path, Request& request, const std::vector<site::Site>& sites) {
  const std::string text = read_script(path);
  const site::JobScript script = site::read_job_script(text);
  std::error_code reason;
  const fs::path absolute = fs::absolute(path, reason);
  const auto mark = site::find_mark(script, "site");
  const std::string known =
      site::site_of(sites, request.site, mark ? mark->text : "", site::sourced_library(script), absolute.string());
  const std::string name = known.empty() ? "generic" : known;
  const site::Site& site = core::find_named(
      sites, name, "site", request.site.empty() ? fmt::format("{}:{}", path, mark ? mark->line : 1) : "--site");
  const auto exists = [folder = absolute.parent_path()](const std::string& file) {
    std::error_code ignored;
    return fs::exists(folder / file, ignored);
  };
  std::vector<site::Finding> findings = site::lint_script(script, site, exists);
  // bash cannot read lines of Windows either, but lint_script() says so more clearly.
  const auto broken = script.dos_line == 0 ? find_syntax_error(path, text, script) : std::nullopt;
  const auto insert = [&findings](const site::Finding& finding) {
    findings.insert(std::ranges::upper_bound(findings, finding.line, {}, &site::Finding::line), finding);
  };
  if (broken) insert(*broken);
  const site::Unread& unread = script.unread;
  if (!broken && unread.open_line != 0 && is_for_bash(text)) insert(of_unread(unread.open_line, false));
  if (unread.full_line != 0) insert(of_unread(unread.full_line, true));
  ShellCheck said;
  if (!request.without_shellcheck && is_for_bash(text))
    said = ask_shellcheck(path, findings, broken || script.dos_line != 0);
  request.without_shellcheck |= said.state == "late";  // it would be so again
  for (const site::Finding& finding : said.findings) insert(finding);
  if (known.empty()) findings.insert(findings.begin(), of_no_site(sites));
  return {path, name, std::move(findings), said.state};
}

using LintJson = nlohmann::ordered_json;  // keys in the order written here

long count(const std::vector<Judged>& all, site::Severity severity) {
  long n = 0;
  for (const Judged& one : all) n += std::ranges::count(one.findings, severity, &site::Finding::severity);
  return n;
}

std::string line_of(const std::string& file, const site::Finding& finding) {
  std::string text = fmt::format("{}:{}: {}: {}", file, finding.line, site::name(finding.severity), finding.what);
  if (!finding.why.empty()) text += "; " + finding.why;
  if (!finding.fix.empty()) text += fmt::format(" (fix: {})", finding.fix);
  return core::printable(text) + "\n";
}

/// Whether there is an error or a warning.
bool is_clean(const std::vector<Judged>& all) noexcept {
  return count(all, site::Severity::error) + count(all, site::Severity::warning) == 0;
}

/// Lines FILE:LINE: and what compilers print after it, so that editors find the place.
std::string describe(const std::vector<Judged>& all) {
  std::string text;
  for (const Judged& one : all)
    for (const site::Finding& finding : one.findings) text += line_of(one.file, finding);
  std::set<std::string> sites;
  for (const Judged& one : all) sites.insert(one.site);
  const long n_missing = std::ranges::count(all, "missing", &Judged::shellcheck);
  const long n_failed = std::ranges::count(all, "failed", &Judged::shellcheck);
  std::string failed = n_failed == 0 ? "" : "; ShellCheck failed on " + site::counted(n_failed, "script");
  if (std::ranges::count(all, "late", &Judged::shellcheck) > 0) failed += "; ShellCheck gave no answer in 10 s";
  return text + fmt::format("{} checked for {}: {}, {}, {}{}{}\n",
                            site::counted(static_cast<long>(all.size()), "script"),
                            core::printable(fmt::format("{}", fmt::join(sites, ", "))),
                            site::counted(count(all, site::Severity::error), "error"),
                            site::counted(count(all, site::Severity::warning), "warning"),
                            site::counted(count(all, site::Severity::note), "note"),
                            n_missing == 0 ? "" : "; without ShellCheck", failed);
}

/// As share/schemas/lint-1.schema.json has it.
std::string to_json(const std::vector<Judged>& all) {
  LintJson scripts = LintJson::array();
  for (const Judged& one : all) {
    LintJson findings = LintJson::array();
    for (const site::Finding& finding : one.findings)
      findings.push_back({{"line", finding.line},
                          {"severity", site::name(finding.severity)},
                          {"what", finding.what},
                          {"why", finding.why},
                          {"fix", finding.fix}});
    scripts.push_back({{"file", one.file}, {"site", one.site}, {"shellcheck", one.shellcheck}, {"findings", findings}});
  }
  LintJson counts;
  for (const site::Severity severity : site::all_severities)
    counts[std::string{site::name(severity)}] = count(all, severity);
  const LintJson json{{"schema", "lockstep.lint"},
                      {"schema_version", 1},
                      {"clean", is_clean(all)},
                      {"counts", counts},
                      {"scripts", scripts}};
  return json.dump(2, ' ', false, LintJson::error_handler_t::replace) + "\n";
}

void tell(const std::vector<Judged>& all, const std::string& json) {
  core::print(json == "-" ? to_json(all) : describe(all));
  if (json.empty() || json == "-") return;
  const std::string text = to_json(all);
  core::write_whole(json, std::as_bytes(std::span{text}));
}

core::ExitCode lint(Request request) {
  if (!request.json.empty() && request.json != "-") core::check_writable(request.json, "--json");
  const std::string file = find_site_file();
  const std::vector<site::Site> sites = read_sites(io::read_text(file, most_text), file);
  if (!request.site.empty()) (void)core::find_named(sites, request.site, "site", "--site");
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
  flags.text("--site S", request->site,
             "delta, derecho, ibex, hipergator or generic, which has no limits. Without --site, the site comes from a "
             "line \"# lockstep: site=S\" in the script, or the sourced lib/S.sh, or the name of the script's folder; "
             "if none is a known site, generic is used, with a note");
  flags.text("--json F", request->json,
             "write the findings to F, too (share/lockstep/schemas/lint-1.schema.json); -: only to stdout");
  flags.toggle("--no-shellcheck", request->without_shellcheck, "do not run ShellCheck");
  return {.check = {}, .run = [request](const runtime::Session& session) { return run(*request, session); }};
}

}  // namespace

Invocation parse(const std::vector<std::string>& arguments) {
  if (asks_for_help(arguments)) {
    core::Flags flags{""};
    static_cast<void>(declare(flags));
    return {.text = fmt::format("{}{}{}", before_flags, flags.help(), after_flags)};
  }
  return make_invocation(std::string{usage}, declare, arguments);
}

}  // namespace lockstep::training::lint
