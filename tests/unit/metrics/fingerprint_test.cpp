#include "metrics/fingerprint.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockstep::metrics {
namespace {

TEST(Fingerprint, HoldsTheEnvironmentInOrder) {
  runtime::Environment environment;
  environment.time = "2026-01-02T03:04:05Z";
  environment.lockstep = "0.1.0";
  environment.hosts = {"a", "b"};
  environment.variables = {{"OMP_NUM_THREADS", "2"}};
  const nlohmann::ordered_json json = to_json(environment);
  EXPECT_EQ(json.begin().key(), "lockstep");
  EXPECT_EQ(json["hosts"], (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(json["variables"]["OMP_NUM_THREADS"], "2");
  EXPECT_FALSE(json.contains("time"));
}

TEST(Fingerprint, HoldsThePlaceOfEveryRank) {
  runtime::Topology topology;
  topology.cores_per_node = {4};
  topology.places = {{.rank = 0, .host = "a", .cpus = {0, 1}}, {.rank = 1, .host = "a", .local_rank = 1, .cpus = {2}}};
  const nlohmann::ordered_json json = to_json(topology);
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["nodes"], 1);
  EXPECT_EQ(json["placement"][1]["local_rank"], 1);
  EXPECT_EQ(json["placement"][0]["cpus"], (std::vector<int>{0, 1}));
}

TEST(Fingerprint, ReplacesWhatIsNoUtf8) { EXPECT_EQ(dump({{"host", "a\xff"}}, -1), "{\"host\":\"a\xef\xbf\xbd\"}"); }

}  // namespace
}  // namespace lockstep::metrics
