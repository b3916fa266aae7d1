#include "core/error.hpp"

#include <fmt/format.h>

#include <string_view>
#include <system_error>
#include <utility>

#include "core/printable.hpp"

namespace lockstep::core {
namespace {

// Messages do not show the place of the build tree.
std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

Error::Error(ExitCode code, Problem problem, SourceLocation location)
    : std::runtime_error{describe(problem)}, code_{code}, problem_{std::move(problem)}, location_{location} {}

std::string describe(const Problem& problem) {
  std::string text = printable(problem.what);
  if (!problem.where.empty()) text += fmt::format(" ({})", printable(problem.where));
  if (!problem.expected.empty()) text += fmt::format("\n  expected: {}", printable(problem.expected));
  if (!problem.fix.empty()) text += fmt::format("\n  fix: {}", printable(problem.fix));
  return text;
}

void fail_usage(Problem problem, SourceLocation location) {
  throw Error{ExitCode::usage, std::move(problem), location};
}

void fail_system(const std::string& what, SourceLocation location) {
  throw Error{ExitCode::system, {.what = what}, location};
}

void fail_promise(const char* promise, SourceLocation location) {
  const Problem problem{.what = fmt::format("broken promise: {}", promise),
                        .where = fmt::format("{}:{}", file_name(location.file), location.line)};
  throw Error{ExitCode::system, problem, location};
}

std::string system_reason(int error) { return std::generic_category().message(error); }

}  // namespace lockstep::core
