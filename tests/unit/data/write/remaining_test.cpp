#include "data/write/remaining.hpp"

#include <gtest/gtest.h>

#include "data/write/pack.hpp"
#include "runtime/communicator.hpp"
#include "unit/data/tiny_source.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::data {
namespace {

using Bad = std::set<std::pair<std::size_t, std::uint64_t>>;

/// A set of "train" and "val", without the samples `bad`; sample i is of class i % 3.
PackResult pack_without(const Bad& bad, const std::string& out, const PackOptions& more = {}, bool is_encoded = false) {
  TinySource source{{{"train", 9}, {"val", 3}, {"none", 0}}};
  if (is_encoded) source.make_encoded();
  source.bad = bad;
  PackOptions options = more;
  options.out = out;
  options.shard_bytes = {3 * 44};
  options.chunk_bytes = {35};
  options.skip_bad = true;
  return pack(source, options, runtime::Communicator::alone(), {});
}

TEST(Remaining, ASplitThatLosesAllSamplesIsRefused) {
  const io::TemporaryFolder folder;
  for (const bool is_encoded : {false, true})
    for (const bool shuffle : {false, true})
      io::expect_error(
          [&] {
            pack_without({{1, 0}, {1, 1}, {1, 2}}, folder / "set", {.shuffle = shuffle}, is_encoded);
          },
          core::ExitCode::usage,
          {"all samples of 'val' are damaged, so --skip-bad leaves none", "val/0.jpg: truncated", "fix: repair"});
  EXPECT_EQ(folder.n_entries(), 0u);
}

TEST(Remaining, AClassThatLosesAllSamplesIsNamed) {
  const io::TemporaryFolder folder;
  const auto warnings = [&](const Bad& bad) {
    std::vector<std::string> lost;
    for (const Remark& remark : pack_without(bad, folder / std::to_string(folder.n_entries())).remarks)
      if (remark.kind == Remark::Kind::warning) lost.push_back(remark.text);
    return lost;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(warnings({}), Texts{});
  EXPECT_EQ(warnings({{0, 1}, {0, 4}}), Texts{}) << "one is left";
  EXPECT_EQ(warnings({{0, 1}, {0, 4}, {0, 7}}),
            Texts{"train: 1 of 3 classes has no sample without the damaged ones: one"});
  EXPECT_EQ(warnings({{1, 0}, {1, 2}}),
            Texts{"val: 2 of 3 classes have no sample without the damaged ones: zero, two"});
}

}  // namespace
}  // namespace lockstep::data
