#include "site/sites.hpp"

#include <gtest/gtest.h>

namespace lockstep::site {
namespace {

std::vector<Site> two_sites() {
  return {{.name = "generic"}, {.name = "here", .kinds = {{{"a"}, {.gpus = 1}}, {{"a", "b"}, {.gpus = 2}}}}};
}

TEST(Sites, AreFoundByTheirNames) {
  const auto sites = two_sites();
  EXPECT_EQ(find_site(sites, "here"), &sites[1]);
  EXPECT_EQ(find_site(sites, "there"), nullptr);
}

TEST(Sites, AScriptBelongsWhereItIsSaidThenMarkedThenSourcedThenLies) {
  const auto sites = two_sites();
  EXPECT_EQ(site_of(sites, "asked", "marked", "here", "batch/here/x"), "asked");
  EXPECT_EQ(site_of(sites, "", "marked", "here", "batch/here/x"), "marked");
  EXPECT_EQ(site_of(sites, "", "", "generic", "batch/here/x"), "generic");
  EXPECT_EQ(site_of(sites, "", "", "generic-slurm", "batch/here/x"), "generic");
  EXPECT_EQ(site_of(sites, "", "", "job", "batch/here/x"), "here");
  EXPECT_EQ(site_of(sites, "", "", "", "batch/here/x"), "here");
  EXPECT_EQ(site_of(sites, "", "", "", "here/x"), "here");
  EXPECT_EQ(site_of(sites, "", "", "", "here/there/x"), "");
  EXPECT_EQ(site_of(sites, "", "", "", "here"), "");
}

TEST(Sites, TheKindWithMostFeaturesIsChosen) {
  const auto sites = two_sites();
  EXPECT_EQ(find_kind(sites[1], "a")->nodes.gpus, 1);
  EXPECT_EQ(find_kind(sites[1], "[b&a&c]")->nodes.gpus, 2);
  EXPECT_EQ(find_kind(sites[1], "b"), nullptr);
  EXPECT_EQ(find_kind(sites[1], ""), nullptr);
}

}  // namespace
}  // namespace lockstep::site
