#include "parallel/group_sum.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "comm/transport_threads.hpp"
#include "runtime/staging.hpp"
#include "support/recorder.hpp"

namespace lockstep::parallel {
namespace {

constexpr std::size_t most_values = 2049;

using Sum = std::function<void(std::span<double>)>;

void expect_sums(int rank, int n_together, const Sum& sum) {
  for (const std::size_t n :
       {std::size_t{5}, std::size_t{64}, std::size_t{7}, std::size_t{1}, most_values, std::size_t{5}}) {
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = rank + 10 * static_cast<double>(i);
    sum(values);
    const int first = rank / n_together * n_together;
    const double ranks = n_together * (first + 0.5 * (n_together - 1));
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_EQ(values[i], ranks + 10 * static_cast<double>(i) * n_together) << i << " of " << n;
  }
}

void on_placements(const std::function<void(comm::Transport& world, int n_together)>& work) {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 1, 1}, {0, 1, 0, 1, 0, 1}})
    for (const int n_together : {2, 3, 6})
      comm::run_as_threads(nodes, [&](comm::Transport& world) { work(world, n_together); });
}

TEST(GroupSum, IsThatOfRanksInARow) {
  on_placements([](comm::Transport& world, int n_together) {
    HostGroupSum group{world, n_together, false};
    expect_sums(world.rank(), n_together, [&](std::span<double> values) { group.sum(values); });
  });
}

TEST(GroupSum, OnTheHostAStreamGetsTheSame) {
  on_placements([](comm::Transport& world, int n_together) {
    const auto group = make_group_sum(world, nullptr, n_together);
    runtime::Stream stream;
    expect_sums(world.rank(), n_together,
                [&](std::span<double> values) { group->sum(runtime::on_device(values), stream); });
  });
}

TEST(GroupSum, OnDevicesItIsTheSame) {
  test::Recorder recorder;
  {
    const test::UseRecorder use{recorder};
    on_placements([](comm::Transport& world, int n_together) {
      const auto devices = comm::make_staged(world);
      const auto group = make_group_sum(world, devices.get(), n_together);
      const runtime::Buffer memory{core::Bytes{most_values * sizeof(double)}, runtime::Memory::device};
      runtime::Staging staging;
      runtime::Stream stream;
      expect_sums(world.rank(), n_together, [&](std::span<double> values) {
        const auto there = memory.on_device<double>().subspan(0, values.size());
        staging.send(std::as_bytes(values), runtime::as_writable_bytes(there));
        group->sum(there, stream);
        stream.wait();
        staging.fetch(runtime::as_bytes(there), std::as_writable_bytes(values));
      });
    });
  }
  for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
}

}  // namespace
}  // namespace lockstep::parallel
