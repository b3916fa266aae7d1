#include "core/print.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "core/printable.hpp"

namespace lockstep::core {

void print(std::string_view text) {
  const std::string shown = printable(text, "\n\t");
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0) return;
  throw Error{ExitCode::system,
              {.what = fmt::format("cannot write to stdout: {}", system_reason(errno)),
               .where = "",
               .expected = "",
               .fix = "free space where stdout goes, or send it elsewhere"},
              SourceLocation::current()};
}

void Printer::print(std::string_view text) {
  if (!complaint_) complaint_ = complaint_of([text] { core::print(text); });
}

}  // namespace lockstep::core
