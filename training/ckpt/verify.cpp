// lockstep ckpt verify: whether every byte of checkpoints is what it was when it was written.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/folder.hpp"
#include "checkpoint/index.hpp"
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
      has_changed_ = has_whole_ = false;
      const auto missing = core::complaint_of([&] { session_.world().rank() == 0 ? list() : void(); });
      if (const auto bad = session_.agree(missing)) return core::to_int(*bad);
      const std::uint64_t n = runtime::broadcast_value(session_.world(), std::uint64_t{paths_.size()});
      for (std::uint64_t i = 0; i < n; ++i)
        if (const auto bad = verify(session_.world().rank() == 0 ? paths_[i] : "")) return core::to_int(*bad);
    } while (has_changed_);
    const auto bad = code_ == core::ExitCode::ok ? std::nullopt : print(fix());
    return core::to_int(bad.value_or(code_));
  }

 private:
  /// On rank 0.
  void list() {
    if (seen_.empty()) checkpoint::tell_links(checkpoint::folder_meant(folder_));
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
      if (!std::exchange(has_whole_, true)) newest_whole_ = one.path();
    });
    if (complaint) {
      const bool is_gone = runtime::broadcast_value(world, world.rank() == 0 && checkpoint::is_gone(path));
      has_changed_ = has_changed_ || is_gone;
      const auto code =
          runtime::broadcast_value(world, world.rank() == 0 ? code_of(*complaint, path) : core::ExitCode::ok);
      if (!is_gone) code_ = std::max(code_, code);
      is_newer_ = is_newer_ || complaint->problem().fix == checkpoint::newer_fix;
      if (world.rank() == 0 && !checkpoint::misnamed_reason(path).empty()) misnamed_ = path;
      line = complaint->problem().what + "\n";
    }
    return print(line);
  }

  /// Collective: prints it on rank 0.
  std::optional<core::ExitCode> print(const std::string& line) {
    return session_.agree(core::complaint_of([&] { session_.world().rank() == 0 ? core::print(line) : void(); }));
  }

  [[nodiscard]] std::string fix() const {
    const std::string first = code_ == core::ExitCode::system ? "make readable what could not be read, and verify again"
                              : !misnamed_.empty()
                                  ? fmt::format("rename '{}', or move it away; and verify again", misnamed_)
                              : is_newer_ ? std::string{checkpoint::newer_fix}
                                          : "";
    if (!newest_whole_.empty())
      return fmt::format(
          "fix: {}resume from the newest that is whole: lockstep train RECIPE --resume {} --run-dir NEW{}\n",
          first.empty() ? "" : first + "; or ", newest_whole_,
          code_ == core::ExitCode::failed ? "; in the run's own folder: --resume auto" : "");
    if (!first.empty()) return fmt::format("fix: {}\n", first);
    if (seen_.contains(folder_))
      return fmt::format("fix: copy it again; to find another: lockstep ckpt verify {}\n",
                         (std::filesystem::path{folder_} / "..").lexically_normal().string());
    return "fix: none is whole: copy one again, or start a new run in another folder\n";
  }

  const std::string& folder_;
  const runtime::Session& session_;
  std::vector<std::string> paths_{};              ///< on rank 0
  std::set<std::string> seen_{};                  ///< likewise
  bool has_changed_ = false, has_whole_ = false;  ///< in this list
  std::string newest_whole_{};                    ///< of all lists: a later one has only what is newer
  std::string misnamed_{};                        ///< on rank 0: one with the name of another step
  core::ExitCode code_ = core::ExitCode::ok;
  bool is_newer_ = false;  ///< one is of a newer Lockstep
};

}  // namespace

constexpr std::string_view verify_help = R"(  lockstep ckpt verify r
  lockstep ckpt verify r --nproc 4      four ranks read different files

Reads every file once and compares its digest with the one in the index, and the index's digest with its mark. Exit
code 0: all are whole; 1: one is damaged or incomplete, with a line for each; 2: an index has content that Lockstep
never writes, such as the path of a file, a file is a link or not a regular file, or a folder has the name of another
step; 3: one could not be read. The last line then says how to go on, for example from the newest whole one. Checkpoints
that a run removes meanwhile are ignored; so are symbolic links called step-N, with a message for each.

)";

Action declare_verify(core::Flags& flags) {
  flags.note(verify_help);
  auto folder = std::make_shared<std::string>();
  flags.word("FOLDER", *folder);
  return {.check = {}, .run = [folder](const runtime::Session& session) {
            return Verification{*folder, session}.run();
          }};
}

}  // namespace lockstep::training::ckpt
