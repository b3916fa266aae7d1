#include "data/write/remaining.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "io/hdf5.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t most_classes_shown = 5;

/// Sets what the labels `y` name.
void mark_classes(core::DType dtype, std::span<const std::byte> y, std::vector<bool>& has_sample) {
  core::visit(dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_unsigned_v<T>) {
      for (std::size_t at = 0; at < y.size(); at += sizeof(T)) {
        T label{};
        std::memcpy(&label, &y[at], sizeof(T));
        has_sample.at(label) = true;
      }
    }
  });
}

std::vector<std::string> find_lost(const std::string& folder, const Manifest& manifest, const Split& split) {
  const SetSpec& spec = manifest.spec;
  std::vector<bool> has_sample(spec.classes.size());
  std::vector<std::byte> y;
  for (const ShardEntry& shard : split.shards) {
    y.resize(shard.n_samples * spec.y.bytes());
    io::Hdf5File::open(fmt::format("{}/{}", folder, shard.file)).open_dataset("/y").read_rows(0, shard.n_samples, y);
    mark_classes(spec.y.dtype, y, has_sample);
  }
  std::vector<std::string> lost;
  for (std::size_t i = 0; i < has_sample.size(); ++i)
    if (!has_sample[i]) lost.push_back(spec.classes[i]);
  return lost;
}

}  // namespace

void require_samples(const PackPlan& plan, const std::vector<BadRecord>& bad) {
  for (const OutputSplit& split : plan.splits()) {
    const auto first = std::ranges::find_if(bad, [&](const BadRecord& record) { return record.split == split.source; });
    if (split.selection.n() > 0 || first == bad.end()) continue;
    core::fail_usage({.what = fmt::format("all samples of '{}' are damaged, so --skip-bad leaves none", split.name),
                      .where = first->text,
                      .expected = "at least one intact sample in each split",
                      .fix = "repair the samples, or remove the split"});
  }
}

std::vector<Remark> remarks_on_lost_classes(const std::string& folder, const Manifest& manifest,
                                            const std::vector<BadRecord>& bad) {
  if (bad.empty() || manifest.spec.classes.empty()) return {};
  std::vector<Remark> remarks;
  for (const Split& split : manifest.splits) {
    if (split.n_samples == 0) continue;  // as in the source
    const std::vector<std::string> lost = find_lost(folder, manifest, split);
    if (lost.empty()) continue;
    const std::size_t n_shown = std::min(lost.size(), most_classes_shown);
    remarks.push_back(
        warning(fmt::format("{}: {} of {} classes {} no sample without the damaged ones: {}{}", split.name, lost.size(),
                            manifest.spec.classes.size(), lost.size() == 1 ? "has" : "have",
                            core::join(std::span{lost}.first(n_shown)), n_shown < lost.size() ? ", ..." : "")));
  }
  return remarks;
}

}  // namespace lockstep::data
