#include "support/error_table.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/print.hpp"

namespace lockstep::test {
namespace {

struct Noted {
  double error = 0;
  double tolerance = 0;
};

class ErrorTable final : public ::testing::Environment {
 public:
  void TearDown() override {
    if (std::ranges::all_of(of_, [](const auto& row) { return row.second.error < row.second.tolerance; })) return;
    std::string text = fmt::format("{:<48} {:>10} {:>10}\n", "compared with the reference", "error", "tolerance");
    for (const auto& [what, noted] : of_)
      text += fmt::format("{:<48} {:>10.2e} {:>10.0e} {}\n", what, noted.error, noted.tolerance,
                          noted.error < noted.tolerance ? "" : "TOO LARGE");
    core::print(text);
  }
  std::map<std::string, Noted> of_{};
};

// GoogleTest owns it.
ErrorTable& error_table = static_cast<ErrorTable&>(*::testing::AddGlobalTestEnvironment(new ErrorTable));

}  // namespace

bool note_error(const std::string& what, double error, double tolerance) {
  Noted& noted = error_table.of_.try_emplace(what, Noted{0, tolerance}).first->second;
  // NaN counts as larger than all numbers.
  if (!std::isnan(noted.error) && !(error * noted.tolerance <= noted.error * tolerance)) noted = {error, tolerance};
  return error < tolerance;
}

}  // namespace lockstep::test
