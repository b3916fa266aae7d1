// The reader of result files that are compared: any text is a Results or an Error, and what is read can be compared.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "report/comparison.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace report = lockstep::report;
  try {
    const std::vector<report::Results> launches{
        report::parse_results({reinterpret_cast<const char*>(data), size}, "fuzz")};
    const report::Comparison comparison = report::compare(launches, launches, 0.05);
    if (comparison.is_slower() || comparison.rows.size() != launches.front().series.size() ||
        report::to_text(comparison).empty() || report::to_junit(comparison).empty())
      std::abort();
  } catch (const lockstep::core::Error&) {
    return 0;
  }
  return 0;
}
