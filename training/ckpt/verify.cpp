// lockstep ckpt verify: whether every byte of checkpoints is what it was when it was written.

#include <memory>

#include "core/print.hpp"
#include "training/ckpt/checkpoints.hpp"
#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

/// Collective: of each a line on rank 0.
int verify(const std::string& folder, const runtime::Session& session) {
  const runtime::Communicator& world = session.world();
  std::vector<std::string> paths;
  const auto missing = core::complaint_of([&] {
    if (world.rank() == 0) paths = require_checkpoints(folder);
  });
  if (const auto bad = session.agree(missing)) return core::to_int(*bad);
  const std::uint64_t n = runtime::broadcast_value(world, std::uint64_t{paths.size()});
  core::ExitCode code = core::ExitCode::ok;
  for (std::uint64_t i = 0; i < n; ++i) {
    std::string line;
    const auto complaint = core::complaint_of([&] {  // the same on all ranks
      const auto one = checkpoint::open_checkpoint(world, world.rank() == 0 ? paths[i] : "");
      line = fmt::format("{} is whole: {} file{}, {}, every byte as it was written\n", one.path(), one.n_files(),
                         one.n_files() == 1 ? "" : "s", core::format_decimal(one.bytes()));
    });
    if (complaint) {
      code = std::max(code, complaint->code());
      line = complaint->problem().what + "\n";
    }
    const auto unprinted = core::complaint_of([&] {
      if (world.rank() == 0) core::print(line);
    });
    if (const auto bad = session.agree(unprinted)) return core::to_int(*bad);
  }
  return core::to_int(code);
}

}  // namespace

std::string verify_help() {
  return R"(  lockstep ckpt verify r
  lockstep ckpt verify r --nproc 4      four ranks read different files

Reads every file once and compares its digest with the index's, and the index's with its mark. Exit code 0: all are whole;
1: one is damaged or incomplete, which is said of each; 2 or 3: one could not be read.

)";
}

Action declare_verify(core::Flags& flags) {
  auto folder = std::make_shared<std::string>();
  flags.word("FOLDER", *folder);
  return {.check = {}, .run = [folder](const runtime::Session& session) { return verify(*folder, session); }};
}

}  // namespace lockstep::training::ckpt
