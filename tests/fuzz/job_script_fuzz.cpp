// A job script: whatever the bytes, it is read and judged without an error, against each kind of site.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "site/script_lint.hpp"

namespace {

using lockstep::site::Site;

const Site generic{.name = "generic", .title = "any cluster"};
const Site strict{.name = "strict",
                  .title = "Strict",
                  .system = "slurm",
                  .launcher = "srun",
                  .mpi_family = "open-mpi",
                  .mpi_flag = "pmix",
                  .needs = {"account"},
                  .wants = {"mem"},
                  .most_gpus = 1,
                  .gone_gpus = {"a100"},
                  .needs_company = {"v100"},
                  .not_here = {"ghx4"},
                  .account_ends = "-gpu",
                  .has_lmod = true,
                  .partitions = {{"main", {1, 1, 1, 1, 1, 1, 1, "b200"}}},
                  .kinds = {{{"v100", "gpu_ai"}, {1, 1, 1, 0, 0, 1, 1, "v100"}}}};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::site;
  const JobScript script = read_job_script({reinterpret_cast<const char*>(data), size});
  const auto no_file = [](const std::string&) { return false; };
  for (const Site* const site : {&generic, &strict}) {
    int line = 0;
    for (const Finding& finding : lint_script(script, *site, no_file)) {
      if (finding.what.empty() || finding.line < 1 || finding.line < line) std::abort();
      line = finding.line;
    }
  }
  return 0;
}
