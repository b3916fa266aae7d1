// Vectors of more than 2^31 elements, in place. Needs about 14 GB; without them the test is skipped.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/registry.hpp"
#include "comm/transport_mpi.hpp"
#include "runtime/buffer.hpp"
#include "support/mpi_main.hpp"

namespace lockstep {
namespace {

constexpr std::size_t n = (std::size_t{1} << 31) + 12'345;

class LargeCount : public testing::TestWithParam<const char*> {};

TEST_P(LargeCount, EveryElementArrives) {
  const auto over = comm::make_mpi_transport(support::session().world(), {.oversubscribed = true});
  const bool has_memory = runtime::available_memory().value >= std::uint64_t{14} << 30;
  if (over->n_ranks() != 2 || support::session().world().any(!has_memory)) GTEST_SKIP() << "needs 2 ranks and 14 GB";
  const comm::Algorithm& algorithm = *comm::find_algorithm(GetParam());
  const comm::Call call{comm::Collective::all_reduce, core::DType::uint8, comm::ReduceOp::sum, n};
  const runtime::HostBuffer buffer{core::Bytes{n}};
  const auto data = buffer.as<std::uint8_t>();
  // Element i: 3 (i mod 41) + rank + 1, told apart wherever 2^30 or 2^31 might wrap, as 41 divides neither.
  std::size_t i = 0;
  for (std::uint8_t& value : data)
    value = static_cast<std::uint8_t>(3 * (i++ % 41) / 2 + static_cast<std::size_t>(over->rank()) + 1);
  const auto plan = comm::make_plan(algorithm, *over, call);
  plan->bind(buffer.bytes(), buffer.bytes());
  plan->run();
  i = 0;
  const auto wrong = std::count_if(data.begin(), data.end(),
                                   [&](std::uint8_t value) { return value != 2 * (3 * (i++ % 41) / 2) + 3; });
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, LargeCount, testing::Values("mpi", "ring", "rabenseifner", "shm"),
                         [](const auto& which) { return std::string{which.param}; });

}  // namespace
}  // namespace lockstep
