#include "training/lint/shell_syntax.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/output_of.hpp"
#include "site/text.hpp"

namespace lockstep::training::lint {
namespace {

constexpr core::Seconds time_for_bash{10};
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
                         time_for_bash);
  if (!complaint) return std::nullopt;
  for (const std::string_view line : site::split(*complaint, '\n'))
    if (auto finding = read_message(line, path)) return finding;
  return std::nullopt;
}

}  // namespace lockstep::training::lint
