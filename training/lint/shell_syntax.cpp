#include "training/lint/shell_syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/output_of.hpp"
#include "site/forms.hpp"
#include "site/text.hpp"

namespace lockstep::training::lint {
namespace {

constexpr core::Seconds time_for_answer{10};
constexpr std::size_t most_of_shellcheck = 100;
// Files that are not there (SC1090, SC1091) are on the cluster. What they and the batch system set (SC2154) or read
// (SC2034) ShellCheck does not see.
constexpr const char* left_out_codes = "SC1090,SC1091,SC2034,SC2154";
// ShellCheck's codes for a list of which only the first element is used, which lint reports, too.
constexpr std::string_view codes_of_lint = "SC2128 SC2206";
constexpr std::size_t longest_line = 16'384;

/// "FILE: line N: MESSAGE" of bash; nothing if `line` is none, or a warning.
std::optional<site::Finding> read_message(std::string_view line, const std::string& path) {
  const std::string beginning = path + ": line ";
  if (!line.starts_with(beginning)) return std::nullopt;
  line.remove_prefix(beginning.size());
  const std::size_t colon = std::min(line.find(": "), line.size());
  const auto number = site::whole_number(line.substr(0, colon));
  const std::string_view message = line.substr(std::min(colon + 2, line.size()));
  if (!number || message.starts_with("warning:")) return std::nullopt;
  return site::Finding{.severity = site::Severity::error,
                       .what = std::string{message},
                       .why = "bash stops there",
                       .fix = "close what is open before it: a quote, $( ), if ... fi, do ... done",
                       .line = static_cast<int>(*number)};
}

/// "FILE:12:3: warning: MESSAGE. [SC2086]" of ShellCheck; nothing if `line` is something else.
std::optional<site::Finding> read_remark(std::string_view line, const std::string& path) {
  if (!line.starts_with(path + ":") || !line.ends_with(']')) return std::nullopt;
  line = line.substr(path.size() + 1, line.size() - path.size() - 2);
  const auto parts = site::split(line, ':');
  const auto number = site::count_in(parts[0]);
  const std::size_t code = line.rfind(" [SC");
  if (parts.size() < 4 || !number || code == line.npos) return std::nullopt;
  const std::size_t begin = parts[0].size() + parts[1].size() + parts[2].size() + 3;
  std::string_view message = site::trim(line.substr(begin, code - std::min(begin, code)));
  message = message.substr(0, message.find_last_not_of(". ") + 1);  // npos + 1 is 0
  const bool is_error = site::severity_named(site::trim(parts[2])) == site::Severity::error;
  return site::Finding{.severity = is_error ? site::Severity::error : site::Severity::note,
                       .what = fmt::format("{} (ShellCheck {})", message, line.substr(code + 2)),
                       .line = static_cast<int>(*number)};
}

/// 0: none is so long. bash needs a time that grows with the square of a line such as a====.
int first_long_line(std::string_view text) {
  const auto lines = site::split(text, '\n');
  const auto found = std::ranges::find_if(lines, [](std::string_view line) { return line.size() > longest_line; });
  return found == lines.end() ? 0 : static_cast<int>(found - lines.begin()) + 1;
}

/// Whether the script switches the patterns of extglob on, or reads a file that may: bash -n executes neither.
bool may_use_patterns(const site::JobScript& script) {
  return std::ranges::any_of(script.commands, [](const site::Command& command) {
    const bool is_shopt = command.words[0] == "shopt" && site::has_word(command.words, "extglob");
    return site::is_one_of(command.words[0], ". source") || (is_shopt && !site::has_word(command.words, "-u"));
  });
}

}  // namespace

bool is_for_bash(std::string_view text) {
  if (!text.starts_with("#!")) return true;
  const auto words = site::split_words(text.substr(2, std::min(text.find('\n'), text.size()) - 2));
  return std::ranges::any_of(words,
                             [](std::string_view word) { return site::is_one_of(site::file_name(word), "bash sh"); });
}

std::optional<site::Finding> find_syntax_error(const std::string& path, std::string_view text,
                                               const site::JobScript& script) {
  if (!is_for_bash(text)) return std::nullopt;
  if (const int line = first_long_line(text); line != 0)
    return site::Finding{.severity = site::Severity::warning,
                         .what = fmt::format("a line of more than {} characters", longest_line),
                         .why = "lint does not ask bash whether it can read this script: such lines take bash too long",
                         .fix = "move the data into a file",
                         .line = line};
  // Prints, and ends with 0, only if there is a bash and it complains; in 1 GiB. BASH_ENV would be executed.
  const auto complaint =
      runtime::output_of({"env", "-u", "BASH_ENV", "LC_ALL=C", "sh", "-c",
                          "ulimit -v 1048576; command -v bash >/dev/null && ! bash $2 -n \"$1\" 2>&1", "sh", path,
                          may_use_patterns(script) ? "-O extglob" : ""},
                         time_for_answer);
  if (!complaint) return std::nullopt;
  for (const std::string_view line : site::split(*complaint, '\n'))
    if (auto finding = read_message(line, path)) return finding;
  return std::nullopt;
}

ShellCheck ask_shellcheck(const std::string& path, const std::vector<site::Finding>& own, bool is_unreadable) {
  // Prints nothing where there is no ShellCheck, which ends with 0 or 1 if it has read the script; in 1 GiB.
  const auto output = runtime::output_of({"env", "LC_ALL=C.UTF-8", "sh", "-c",
                                          "command -v shellcheck >/dev/null || exit 0; ulimit -v 1048576; "
                                          "timeout -k 1 10 shellcheck -f gcc -s bash -S warning -e $2 -- \"$1\"; "
                                          "case $? in 0 | 1) echo ran ;; 124) echo late ;; *) exit 2 ;; esac",
                                          "sh", path, left_out_codes},
                                         {2 * time_for_answer.value});
  if (!output) return {.state = "failed"};
  if (output->empty()) return {.state = "missing"};
  const auto is_told = [&own](int line) {
    return std::ranges::any_of(
        own, [line](const site::Finding& one) { return one.line == line && one.severity != site::Severity::note; });
  };
  ShellCheck said;
  for (const std::string_view line : site::split(*output, '\n')) {
    if (line == "ran" || line == "late") return {std::string{line}, std::move(said.findings)};
    auto finding = read_remark(line, path);
    if (!finding) break;
    const std::string_view code = line.substr(line.rfind('[') + 1);
    const bool is_of_lint = code.starts_with("SC1") || site::is_one_of(code.substr(0, code.size() - 1), codes_of_lint);
    if ((is_of_lint && is_told(finding->line)) || (is_unreadable && code.starts_with("SC1"))) continue;
    if (said.findings.size() == most_of_shellcheck)
      finding->what = fmt::format("more than {} findings of ShellCheck: the others are left out", most_of_shellcheck);
    if (said.findings.size() <= most_of_shellcheck) said.findings.push_back(std::move(*finding));
  }
  return {.state = "failed"};
}

}  // namespace lockstep::training::lint
