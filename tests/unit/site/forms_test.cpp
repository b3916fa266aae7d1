#include "site/forms.hpp"

#include <gtest/gtest.h>

#include "site/options.hpp"

namespace lockstep::site {
namespace {

TEST(Forms, TimesOfSlurm) {
  EXPECT_EQ(slurm_minutes("90"), 90);
  EXPECT_EQ(slurm_minutes("30:30"), 30.5);
  EXPECT_EQ(slurm_minutes("01:30:00"), 90);
  EXPECT_EQ(slurm_minutes("1-0"), 1440);
  EXPECT_EQ(slurm_minutes("2-01:30"), 2970);
  for (const char* const wrong : {"", "=1", "1:2:3:4", "a", "-5", "1-", "1h", "12:-1"})
    EXPECT_EQ(slurm_minutes(wrong), std::nullopt) << wrong;
}

TEST(Forms, TimesOfPbs) {
  EXPECT_EQ(pbs_minutes("12:00:00"), 720);
  EXPECT_EQ(pbs_minutes("30:00"), 30);
  EXPECT_EQ(pbs_minutes("60"), 1);
  EXPECT_EQ(pbs_minutes("12h"), std::nullopt);
}

TEST(Forms, Sizes) {
  EXPECT_EQ(slurm_gb("208G"), 208);
  EXPECT_EQ(slurm_gb("1000gb"), 1000);
  EXPECT_EQ(slurm_gb("2048"), 2);
  EXPECT_EQ(slurm_gb("0"), 0);
  EXPECT_EQ(pbs_gb("2t"), 2048);
  EXPECT_EQ(pbs_gb("1pb"), 1024 * 1024);
  EXPECT_EQ(pbs_gb("134217728w"), 1);
  for (const char* const wrong : {"", "G", "10X", "-1G", "10GBs", "inf", "0.5G", "1e3", "10p"})
    EXPECT_EQ(slurm_gb(wrong), std::nullopt) << wrong;
}

TEST(Forms, GenericResources) {
  const auto all = read_gres("gpu:a100:4,gpu,nvme:1,gpu:b200");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].type, "a100");
  EXPECT_EQ(all[0].count, 4);
  EXPECT_EQ(all[1].count, 1);
  EXPECT_EQ(all[2].name, "nvme");
  EXPECT_EQ(all[3].type, "b200");
  EXPECT_EQ(read_gres("gpu:a:b:c").front().count, std::nullopt);
}

struct OfForm {
  std::string_view form;
  const char* words;
  std::vector<const char*> right;
  std::vector<const char*> wrong;
};

TEST(Forms, TakeWhatBatchSystemsTake) {
  const OfForm table[] = {
      {"text", "", {"", "a b"}, {}},
      {"count", "", {"1", "12"}, {"0", "-1", "", "1.5", "4x"}},
      {"whole", "", {"0", "3"}, {"-1", "a"}},
      {"nodes", "", {"2", "2-4", "1k"}, {"0", "2-", "2-4-6", "two"}},
      {"gpus", "", {"4", "a100:4", "volta:3,kepler:1"}, {"a100", "", "4:a100"}},
      {"gres", "", {"gpu:2", "gpu", "gpu:a100:4,nvme:1", "help"}, {"gpus:2", "gpu:a:b:c"}},
      {"memory", "", {"208G", "4096", "0", "512mb"}, {"0.5G", "8 G", "G"}},
      {"size", "", {"480gb", "1024", "2w"}, {"1.5gb", "gb"}},
      {"time", "", {"10", "1-0", "UNLIMITED"}, {"1h", "1:2:3:4"}},
      {"duration", "", {"12:00:00", "60"}, {"12h", "1-0"}},
      {"path", "", {"/a/b", "a/b", "%x-%j.out"}, {"~/w", "~"}},
      {"signal", "", {"USR1", "B:SIGUSR1@300", "10@60", "R:TERM"}, {"USR@300", "B:@3", "USR1@soon", "USR1@70000"}},
      {"array", "", {"0-15", "1,3,5-7", "0-15:4%2"}, {"a", "1-2-3", "1%0", "-1"}},
      {"dependency", "", {"afterok:20:21", "singleton", "afterok:1?afterany:2"}, {"afterok", "then:20", ""}},
      {"word", "append truncate", {"append", "Append"}, {"add", ""}},
      {"list", "NONE END FAIL", {"END", "end,fail"}, {"ENDED", "END,,FAIL", "END FAIL"}},
      {"parts", "free scatter excl group=", {"scatter", "scatter:excl", "group=host"}, {"scater", "group", ""}},
      {"letters", "oedn", {"oe", "eod"}, {"x", ""}},
  };
  for (const OfForm& one : table) {
    for (const char* const value : one.right) EXPECT_EQ(expected_of(one.form, one.words, value), "") << value;
    for (const char* const value : one.wrong) EXPECT_NE(expected_of(one.form, one.words, value), "") << value;
  }
}

TEST(Forms, OfTheTablesAreKnown) {
  for (const OptionSet set :
       {OptionSet::slurm, OptionSet::qsub, OptionSet::mpi, OptionSet::torch, OptionSet::resources})
    for (const Option& option : options_of(set)) EXPECT_TRUE(is_form(option.form)) << option.name;
  EXPECT_FALSE(is_form("like"));
  EXPECT_NE(expected_of("cuont", "", "1"), "");
}

TEST(Forms, SignalsHaveOneName) {
  for (const char* const text : {"USR1", "SIGUSR1", "usr1", "10"}) EXPECT_EQ(signal_name(text), "USR1") << text;
  for (const char* const text : {"EXIT", "0", "ERR", ""}) EXPECT_EQ(signal_name(text), "") << text;
  EXPECT_TRUE(read_signal("B:USR1@300")->is_to_shell);
  EXPECT_FALSE(read_signal("R:USR1@300")->is_to_shell);
}

}  // namespace
}  // namespace lockstep::site
