#include "core/print.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

namespace lockstep::core {

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
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
