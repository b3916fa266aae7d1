// Test data on a device: the same bytes and the same results of checks as on the host.
#include "reduce_all/checker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "support/test_device.hpp"

namespace lockstep::reduce_all {
namespace {

using runtime::DeviceSpan;
using runtime::kernel::ThreadOrder;

constexpr int n_ranks = 3;
constexpr std::byte around{0x5A};

/// Bytes of the device from `offset` on, between others that must not be touched.
class CheckedBytes {
 public:
  CheckedBytes(std::size_t n, std::size_t offset)
      : n_{n},
        offset_{16 + offset},
        device_{core::Bytes{n + 48}, runtime::Memory::device},
        host_{core::Bytes{n + 48}, runtime::Memory::pinned} {
    std::ranges::fill(host_.bytes(), around);
    send();
  }
  [[nodiscard]] DeviceSpan<std::byte> span() const { return device_.on_device<std::byte>().subspan(offset_, n_); }
  void write(const std::vector<std::byte>& bytes) {
    std::ranges::copy(bytes, host_.bytes().begin() + static_cast<std::ptrdiff_t>(offset_));
    send();
  }
  [[nodiscard]] std::vector<std::byte> read() {
    stream_.copy(host_.bytes(), device_.on_device<std::byte>());
    stream_.wait();
    const auto all = host_.bytes(), here = all.subspan(offset_, n_);
    const auto is_around = [](std::byte byte) { return byte == around; };
    EXPECT_TRUE(std::ranges::all_of(all.first(offset_), is_around) &&
                std::ranges::all_of(all.subspan(offset_ + n_), is_around));
    return {here.begin(), here.end()};
  }

 private:
  void send() {
    stream_.copy(device_.on_device<std::byte>(), host_.bytes());
    stream_.wait();
  }

  std::size_t n_, offset_;
  runtime::Buffer device_, host_;
  runtime::Stream stream_{};
};

std::vector<std::byte> right_output(const TestData& data, std::size_t n_bytes) {
  std::vector<std::byte> output(n_bytes);
  static_cast<void>(data.check_by(n_bytes, [&](const core::Slice& part, std::span<const std::byte> tile) {
    for (std::size_t i = 0; i < part.count; ++i) output[part.offset + i] = tile[i % tile.size()];
    return Mismatch{};
  }));
  return output;
}

void expect_equal(const Mismatch& found, const Mismatch& right) {
  EXPECT_EQ(found.n_wrong, right.n_wrong);
  EXPECT_EQ(found.index, right.index);
  EXPECT_EQ(found.expected, right.expected);
  EXPECT_EQ(found.found, right.found);
}

/// Elements that are made wrong: none; the first; the last; a middle one; several, across packs and periods.
std::vector<std::vector<std::size_t>> plantings(std::size_t n) {
  if (n == 0) return {{}};
  std::vector<std::vector<std::size_t>> all{{}, {0}, {n - 1}, {n / 2}, {}};
  for (std::size_t i = n / 3; i < n; i += 1 + n / 7) all.back().push_back(i);
  return all;
}

void expect_same_findings(Checker& checker, const TestData& data, const comm::Call& call, int rank,
                          std::size_t offset) {
  const std::size_t n = call.output(rank, n_ranks).count, size = call.element_size();
  const std::vector<std::byte> right = right_output(data, n * size);
  ASSERT_EQ(data.check(right).n_wrong, 0U);
  CheckedBytes output{n * size, offset};
  for (const std::vector<std::size_t>& planted : plantings(n)) {
    std::vector<std::byte> bytes = right;
    for (const std::size_t i : planted) bytes[(i + 1) * size - 1] ^= std::byte{0x81};
    output.write(bytes);
    expect_equal(checker.check(output.span(), data), data.check(bytes));
    EXPECT_EQ(data.check(bytes).n_wrong, planted.size());
  }
  checker.poison(output.span(), data);
  std::vector<std::byte> poison(n * size);
  data.poison(poison);
  EXPECT_EQ(output.read(), poison);
  expect_equal(checker.check(output.span(), data), data.check(poison));
  EXPECT_EQ(data.check(poison).n_wrong, n);
}

void expect_same_input(Checker& checker, const TestData& data, const comm::Call& call, std::size_t n_elements,
                       std::size_t offset) {
  const std::size_t n_bytes = n_elements * call.element_size();
  CheckedBytes input{n_bytes, offset};
  std::vector<std::byte> right(n_bytes, around);
  data.fill(right);
  checker.fill(input.span(), data);
  EXPECT_EQ(input.read(), right);
}

/// At a different place for each call, so that all multiples of the element's size occur.
void expect_same(const comm::Call& call, int rank, ThreadOrder order) {
  SCOPED_TRACE(testing::Message() << comm::name(call.collective) << ' ' << comm::name(call.op) << ' '
                                  << core::name(call.dtype) << ' ' << call.n_elements << " rank " << rank);
  static std::size_t n_calls = 0;
  const test::TestDevice device{order};
  const std::size_t offset = n_calls++ * call.element_size() % 16;
  Checker checker{call};
  for (const std::uint64_t seed : {1, 2}) {
    const TestData data{call, rank, n_ranks, seed};
    expect_same_input(checker, data, call, call.input(rank, n_ranks).count, offset);
    if (seed == 2) expect_same_input(checker, data, call, call.n_elements, offset);  // as a copying algorithm has it
    if (seed == 1) expect_same_findings(checker, data, call, rank, offset);
  }
  EXPECT_TRUE(device.complaints().empty()) << device.complaints().front();
}

class CheckerOnDevice : public testing::TestWithParam<core::DType> {};

TEST_P(CheckerOnDevice, FindsWhatTheHostFindsInVectorsOfFewElements) {
  for (const comm::Collective collective : comm::all_collectives)
    for (const comm::ReduceOp op : comm::all_reduce_ops)
      for (const std::size_t n : {1, 2, 3, 7, 15, 16, 17, 33, 100})
        expect_same({.collective = collective, .dtype = GetParam(), .op = op, .n_elements = n},
                    static_cast<int>(n % n_ranks), ThreadOrder::shuffled);
}

TEST_P(CheckerOnDevice, FindsWhatTheHostFindsAroundAPeriod) {
  for (const comm::Collective collective : comm::all_collectives) {
    for (const std::size_t n : {TestData::period - 1, TestData::period, TestData::period + 1})
      expect_same({.collective = collective, .dtype = GetParam(), .op = comm::ReduceOp::max, .n_elements = n}, 1,
                  ThreadOrder::descending);
    for (const comm::ReduceOp op : comm::all_reduce_ops)
      expect_same({.collective = collective, .dtype = GetParam(), .op = op, .n_elements = 3 * TestData::period + 5}, 1,
                  ThreadOrder::descending);
  }
}

TEST_P(CheckerOnDevice, FindsWhatTheHostFindsInManyPeriods) {
  for (const comm::ReduceOp op : comm::all_reduce_ops)
    expect_same({.dtype = GetParam(), .op = op, .n_elements = 17 * TestData::period + 9}, 2, ThreadOrder::ascending);
}

// So long that every thread has several packs.
TEST(CheckerOnOneDevice, FindsWhatTheHostFindsInLongVectors) {
  for (const core::DType dtype : {core::DType::uint8, core::DType::float64}) {
    const std::size_t n_bytes = (std::size_t{20} << 20) + 8;
    expect_same({.dtype = dtype, .n_elements = n_bytes / core::size_of(dtype)}, 0, ThreadOrder::shuffled);
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, CheckerOnDevice, testing::ValuesIn(core::all_dtypes),
                         [](const auto& test) { return std::string{core::name(test.param)}; });

TEST(CheckerOnOneDevice, FlipsTheBitOfOneElement) {
  const test::TestDevice device;
  const comm::Call call{.dtype = core::DType::float32, .n_elements = 100};
  const TestData data{call, 0, n_ranks, 1};
  Checker checker{call};
  CheckedBytes output{400, 4};
  output.write(right_output(data, 400));
  checker.flip_bit(output.span(), 4 * 70);
  const Mismatch found = checker.check(output.span(), data);
  EXPECT_EQ(found.n_wrong, 1U);
  EXPECT_EQ(found.index, 70U);
  EXPECT_EQ(found.expected ^ found.found, 1U);
}

}  // namespace
}  // namespace lockstep::reduce_all
