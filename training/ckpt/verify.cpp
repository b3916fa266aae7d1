// lockstep ckpt verify: whether every byte of checkpoints is what it was when it was written.

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "core/print.hpp"
#include "training/ckpt/checkpoints.hpp"
#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

class Verification {
 public:
  Verification(const std::string& folder, const runtime::Session& session) : folder_{folder}, session_{session} {}

  /// Collective: prints a line for each on rank 0. A checkpoint that a run removes meanwhile is not damaged, and new
  /// ones may have appeared.
  int run() {
    do {
      has_changed_ = false;
      const auto missing = core::complaint_of([&] { session_.world().rank() == 0 ? list() : void(); });
      if (const auto bad = session_.agree(missing)) return core::to_int(*bad);
      const std::uint64_t n = runtime::broadcast_value(session_.world(), std::uint64_t{paths_.size()});
      for (std::uint64_t i = 0; i < n; ++i)
        if (const auto bad = verify(session_.world().rank() == 0 ? paths_[i] : "")) return core::to_int(*bad);
    } while (has_changed_);
    return core::to_int(code_);
  }

 private:
  /// On rank 0.
  void list() {
    paths_ = require_checkpoints(folder_);
    std::erase_if(paths_, [&](const std::string& path) { return !seen_.insert(path).second; });
  }

  /// Collective: why its line cannot be printed.
  std::optional<core::ExitCode> verify(const std::string& path) {
    const runtime::Communicator& world = session_.world();
    std::string line;
    const auto complaint = core::complaint_of([&] {  // the same on all ranks
      const auto one = checkpoint::open_checkpoint(world, path);
      line = fmt::format("{} is whole: {} file{}, {}, every byte as it was written\n", one.path(), one.n_files(),
                         one.n_files() == 1 ? "" : "s", core::format_decimal(one.bytes()));
    });
    if (complaint) {
      const bool is_gone = runtime::broadcast_value(world, world.rank() == 0 && checkpoint::is_gone(path));
      has_changed_ = has_changed_ || is_gone;
      if (!is_gone) code_ = std::max(code_, complaint->code());
      line = complaint->problem().what + "\n";
    }
    const auto unprinted = core::complaint_of([&] {
      if (world.rank() == 0) core::print(line);
    });
    return session_.agree(unprinted);
  }

  const std::string& folder_;
  const runtime::Session& session_;
  std::vector<std::string> paths_{};  ///< on rank 0
  std::set<std::string> seen_{};      ///< likewise
  bool has_changed_ = false;
  core::ExitCode code_ = core::ExitCode::ok;
};

}  // namespace

std::string verify_help() {
  return R"(  lockstep ckpt verify r
  lockstep ckpt verify r --nproc 4      four ranks read different files

Reads every file once and compares its digest with the one in the index, and the index's digest with its mark. Exit
code 0: all are intact; 1: one is damaged or incomplete, with a line for each; 2: an index has content that Lockstep
never writes, such as the path of a file, or a file is a link or not a regular file; 3: one could not be read.
Checkpoints that a run removes meanwhile are ignored.

)";
}

Action declare_verify(core::Flags& flags) {
  auto folder = std::make_shared<std::string>();
  flags.word("FOLDER", *folder);
  return {.check = {}, .run = [folder](const runtime::Session& session) {
            return Verification{*folder, session}.run();
          }};
}

}  // namespace lockstep::training::ckpt
