// A job script: whatever the bytes, it is read and judged without an error, against each kind of site.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "site/script_lint.hpp"
#include "unit/site/example_sites.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::site;
  const JobScript script = read_job_script({reinterpret_cast<const char*>(data), size});
  const auto no_file = [](const std::string&) { return false; };
  for (const Site& site : {Site{.name = "generic", .title = "any cluster"}, slurm_site(), pbs_site()}) {
    int line = 0;
    for (const Finding& finding : lint_script(script, site, no_file)) {
      if (finding.what.empty() || finding.line < 1 || finding.line < line) std::abort();
      line = finding.line;
    }
  }
  return 0;
}
