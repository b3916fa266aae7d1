// Every row of kernel_bench on a recorder: that it launches, and that it moves the bytes that its operation declares.
#include "kernel_rows.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "support/recorder.hpp"

namespace lockstep::perf {
namespace {

/// The bytes of regions such as " <3[0:512] >4[16:32]".
std::size_t bytes_of(const std::string& line) {
  std::size_t n_bytes = 0;
  for (std::size_t at = line.find('['); at != std::string::npos; at = line.find('[', at + 1)) {
    std::size_t begin = 0, end = 0;
    char colon = 0;
    std::istringstream{line.substr(at + 1)} >> begin >> colon >> end;
    n_bytes += end - begin;
  }
  return n_bytes;
}

TEST(KernelRows, MoveWhatTheirOperationsTell) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  KernelArrays arrays;
  constexpr std::size_t n = std::size_t{1} << 17;
  std::vector<KernelRow> rows = network_rows(arrays, n);
  for (auto* const make : {optimizer_rows, pattern_rows})
    for (KernelRow& row : make(arrays, n)) rows.push_back(std::move(row));
  std::set<std::string> names;
  runtime::Stream stream;
  static_cast<void>(recorder.take_lines());
  for (const KernelRow& row : rows) {
    row.enqueue(stream);
    const std::vector<std::string> lines = recorder.take_lines();
    ASSERT_EQ(lines.size(), 1U) << row.name;
    EXPECT_NE(lines[0].find(" " + row.name + " "), std::string::npos) << lines[0];
    EXPECT_EQ(row.n_bytes, bytes_of(lines[0])) << lines[0];
    names.insert(row.name);
  }
  stream.wait();
  EXPECT_EQ(names.size(), rows.size()) << "one row of each kernel";
  for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
}

}  // namespace
}  // namespace lockstep::perf
