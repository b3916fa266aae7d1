#include "training/shard/repack.hpp"

namespace lockstep::training::shard {

void check_repacking(const core::Flags& flags, RepackOptions& options) {
  options.keeps_filter = !flags.has("--compress");
  check_packing(flags, options.pack, options.keeps_filter);
}

int repack(const runtime::Session& session, const RepackOptions& options,
           const std::function<std::unique_ptr<SetSource>()>& open) {
  std::unique_ptr<SetSource> source;
  const auto complaint = core::complaint_of([&] { source = open(); });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  data::PackOptions pack = options.pack;
  if (options.keeps_filter) pack.filter = source->filter();
  return pack_and_report(session, *source, pack);
}

}  // namespace lockstep::training::shard
