#include "training/train/dry_run.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace lockstep::training {
namespace {

/// A table of 1000 rows of 16 elements. It looks up one column of the four ids of a sample, or all.
nn::Network table_of(std::optional<std::uint64_t> column) {
  nn::Network net;
  net.embedding("wte", net.ids(4), {.n_rows = 1'000, .width = 16, .column = column});
  return net;
}

std::uint64_t traffic_of(const nn::Network& network, std::uint64_t batch, int n_nodes, bool sends_rows = true) {
  Recipe recipe;
  recipe.batch = batch;
  const parallel::Slot slot{.name = "wte.weight", .slice = {0, 16'000}, .row_elements = sends_rows ? 16U : 0U};
  const parallel::Sharding sharding{{slot}, {slot.slice}, 1}, of_nothing{{}, {}, 1};
  const auto bytes = [&](const parallel::Sharding& of) {
    return network_traffic(recipe, network, of, comm::one_rank_each(n_nodes)).bytes;
  };
  return bytes(sharding) - bytes(of_nothing);  // without those of a step's end
}

TEST(NetworkTraffic, HasARowForEachIdThatIsLookedUp) {
  constexpr std::uint64_t of_row = (16 + 2) * sizeof(float);
  const nn::Network of_column = table_of(2), of_all = table_of(std::nullopt);
  EXPECT_EQ(traffic_of(of_column, 3, 1), 0u);
  EXPECT_EQ(traffic_of(of_column, 3, 2), 3 * of_row);
  EXPECT_EQ(traffic_of(of_column, 3, 4), 3 * 3 * of_row) << "to each other node";
  EXPECT_EQ(traffic_of(of_all, 3, 2), 3 * 4 * of_row);
  EXPECT_EQ(traffic_of(of_all, 3, 4), 3 * 3 * 4 * of_row);
}

TEST(NetworkTraffic, IsThatOfAllRowsIfTheseAreFewer) {
  const nn::Network network = table_of(std::nullopt);
  const std::uint64_t of_table = traffic_of(network, 1'000, 2, false);
  EXPECT_GT(of_table, 0u);
  EXPECT_EQ(traffic_of(network, 1'000, 2), of_table);
}

}  // namespace
}  // namespace lockstep::training
