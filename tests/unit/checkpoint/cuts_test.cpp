#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/folder.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/writer.hpp"
#include "io/hdf5.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::checkpoint {
namespace {

// Devices and versions cut a tensor by rows of its first or second dimension, or between any elements.
TEST(Checkpoint, IsReadInAnyCuts) {
  const auto cut = [](std::size_t n_outer, std::size_t n_rows, std::size_t n_inner, core::Slice rows) {
    return Box{"parameter/a", {4, 6, 5}, n_outer, n_rows, n_inner, rows};
  };
  const auto number = [](std::size_t, std::span<float> values) { std::iota(values.begin(), values.end(), 0.0f); };
  std::vector<float> all(120);
  number(0, all);
  for (const Box& written : {cut(1, 4, 30, {0, 4}), cut(4, 6, 5, {0, 6}), cut(1, 120, 1, {0, 120})}) {
    const io::TemporaryFolder folder;
    const std::string path = folder / name_of(1);
    std::optional<RankFile> file;
    write_checkpoint(runtime::Communicator::alone(), path, "{}", {written}, number, file);
    EXPECT_EQ(io::Hdf5File::open(path + "/rank-00000.h5").open_dataset("/parameter/a").dimensions(),
              (io::Dimensions{4, 6, 5}));
    const Checkpoint checkpoint{path};
    for (const Box& wanted :
         {cut(1, 4, 30, {0, 4}), cut(1, 4, 30, {1, 2}), cut(4, 6, 5, {2, 3}), cut(1, 120, 1, {16, 48})}) {
      std::vector<float> expected(wanted.n_elements()), found(expected.size());
      copy_common(whole(wanted.tensor, wanted.shape), all, wanted, expected);
      checkpoint.read(wanted, found);
      EXPECT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
