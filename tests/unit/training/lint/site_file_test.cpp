#include "training/lint/site_file.hpp"

#include <algorithm>

#include "io/file.hpp"
#include "site/text.hpp"
#include "unit/training/refused.hpp"

namespace lockstep::training::lint {
namespace {

TEST(SiteFile, TheShippedOneHasTheFourClusters) {
  const auto sites = read_sites(io::read_text(LOCKSTEP_SOURCE_SITES), "sites.toml");
  for (const char* const name : {"generic", "delta", "derecho", "ibex", "hipergator"})
    EXPECT_NE(site::find_site(sites, name), nullptr) << name;
  const site::Site& delta = *site::find_site(sites, "delta");
  EXPECT_EQ(site::find_by(delta.partitions, "gpuH200x8", &site::Partition::name)->nodes.most, 1);
  EXPECT_EQ(site::find_by(delta.partitions, "gpuA100x4", &site::Partition::name)->nodes.gpu, "a100");
  const site::Site& ibex = *site::find_site(sites, "ibex");
  EXPECT_EQ(site::find_kind(ibex, "a100&4gpus")->nodes.cores, 62);
  EXPECT_EQ(site::find_site(sites, "derecho")->system, "pbs");
  const site::Site& hipergator = *site::find_site(sites, "hipergator");
  EXPECT_EQ(hipergator.most_index, 3000);
  EXPECT_EQ(hipergator.cpu_qos_ends, "-b");
  EXPECT_EQ(hipergator.replaced, std::vector<std::string>{"SLURM_TMPDIR=TMPDIR"});
  const auto has_partition = [](const site::Site& one) { return !one.partitions.empty() || one.name == "generic"; };
  EXPECT_TRUE(std::ranges::all_of(sites, has_partition));
}

TEST(SiteFile, WhatItDoesNotKnowIsRefusedByPlace) {
  const auto of = [](std::string_view text) { return refused([&] { (void)read_sites(text, "s.toml"); }); };
  const auto has = [](const std::string& message, std::string_view part) {
    return message.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(of("[a]\ntitel = \"x\"\n"), "s.toml:2:9"));
  EXPECT_TRUE(has(of("[a]\ntitel = \"x\"\n"), "did you mean 'title'?"));
  EXPECT_TRUE(has(of("[a.partition]\nb = {gpus = -1}\n"), "a whole number"));
  EXPECT_TRUE(has(of("[a.partition]\nb = 3\n"), "'b' is no table"));
  EXPECT_TRUE(has(of("[a]\nneeds = [1]\n"), "a list of texts"));
  EXPECT_TRUE(has(of("[a]\nfabric = \"string\"\n"), "slingshot or infiniband"));
  EXPECT_TRUE(has(of("[a]\nhas_lmod = 1\n"), "true or false"));
  EXPECT_TRUE(has(of("a = [[2], }"), "s.toml"));
  EXPECT_TRUE(has(of("[a\n"), "s.toml:1"));
  EXPECT_TRUE(has(of("[a]\ntitle = \"\"\"x\"\"\"\n"), "several lines"));
  EXPECT_TRUE(has(of("[a]\ntitle = \"\xc3\xa4\"\n"), "U+00E4, a character beyond ASCII"));
  EXPECT_TRUE(has(of("[a]\ntitle = \"\xc3\xa4\"\n"), "s.toml:2"));
  std::string deep = "[a]\na";
  for (int i = 0; i < 300'000; ++i) deep += ".a";
  EXPECT_TRUE(has(of(deep + " = 1\n"), "a line of more than 1000 characters (s.toml:2)"));
  EXPECT_TRUE(has(of(deep.substr(0, 905) + " = 1\n"), "unknown key 'a'"));
}

TEST(SiteFile, GenericIsAlwaysThere) {
  for (const char* const text : {"", "[a]\n", "[generic]\ntitle = \"mine\"\n"}) {
    const auto sites = read_sites(text, "s.toml");
    EXPECT_EQ(std::ranges::count(sites, "generic", &site::Site::name), 1) << text;
  }
}

}  // namespace
}  // namespace lockstep::training::lint
