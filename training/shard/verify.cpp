// lockstep shard verify: checks whether every byte of a set equals what was written.
#include "data/read/verify.hpp"

#include <memory>

#include "core/log.hpp"
#include "core/print.hpp"
#include "core/timer.hpp"
#include "runtime/interrupt.hpp"
#include "training/progress.hpp"
#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

int report(const std::string& folder, const data::VerifyResult& result, core::Seconds time) {
  for (const data::Damage& damage : result.damages) core::print("{}: {}\n", damage.file, damage.text);
  if (result.damages.empty()) {
    core::print("{} is whole: {} files, {}, {} samples, every byte as it was written ({}, {} MB/s).\n", folder,
                result.n_files, core::format_decimal({result.bytes}), result.n_samples, core::format_seconds(time),
                core::format_number(core::gigabytes_per_second({result.bytes}, time) * 1e3));
    return core::to_int(core::ExitCode::ok);
  }
  core::print(
      "{} is damaged: {} defect{} named above. Copy these files again from an intact copy, move surplus files away, or "
      "make the set again.\n",
      folder, result.damages.size(), result.damages.size() == 1 ? "" : "s");
  return core::to_int(core::ExitCode::failed);
}

int verify(const std::string& folder, const runtime::Session& session) {
  const runtime::Communicator& world = session.world();
  const core::Stopwatch watch;
  data::VerifyResult result;
  const auto complaint = core::complaint_of([&] {
    Progress progress{"verifying", ProgressUnit::bytes, world.rank() == 0};
    result = data::verify(folder, world, [&progress](std::uint64_t n_done, std::uint64_t n_all) {
      return progress.update(n_done, n_all);
    });
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  if (runtime::broadcast_value(world, result.is_stopped)) {
    const int signal = runtime::agree_on_interrupt(world);
    if (world.rank() == 0)
      core::log_warning(fmt::format("stopped by {}: not everything was read", runtime::describe_signal(signal)));
    return 128 + signal;
  }
  const auto unread = session.agree(result.unreadable);
  int code = unread ? core::to_int(*unread) : 0;
  const auto unprinted = core::complaint_of([&] {
    if (world.rank() == 0 && (!unread || !result.damages.empty())) code = report(folder, result, watch.elapsed());
  });
  if (const auto bad = session.agree(unprinted)) return core::to_int(*bad);
  return runtime::broadcast_value(world, code);
}

}  // namespace

constexpr std::string_view verify_help = R"(  lockstep shard verify d
  lockstep shard verify d --nproc 4      four ranks read different shards

Reads every file once and compares its digest with the one in the manifest. If a file differs, the check sums show
which chunk and samples are affected. Missing files, HDF5 files that do not belong to the set, labels beyond the
classes, and an index that contradicts the manifest or the bytes are reported too. Files of other types, such as your
notes, are ignored. Exit code 0: the set is whole; 1: it is damaged, with one line for each defect; 2 or 3: a file
could not be read, and the others are whole.

)";

Action declare_verify(core::Flags& flags) {
  flags.note(verify_help);
  auto folder = std::make_shared<std::string>();
  flags.word("FOLDER", *folder);
  flags.note(R"(
Memory: a piece of 4 MiB and one shard's check sums per rank.
)");
  return {.check = {}, .run = [folder](const runtime::Session& session) { return verify(*folder, session); }};
}

}  // namespace lockstep::training::shard
