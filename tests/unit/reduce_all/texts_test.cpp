#include "reduce_all/texts.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "comm/registry.hpp"
#include "core/version.hpp"
#include "reduce_all/options.hpp"

namespace lockstep::reduce_all {
namespace {

TEST(Texts, TheHelpHasEveryFlag) {
  core::Flags flags{""};
  Options options;
  declare(flags, options);
  const std::string help = help_text();
  for (const std::string& flag : flags.names()) EXPECT_NE(help.find(" " + flag), std::string::npos) << flag;
}

TEST(Texts, TheHelpNamesEveryTypeOpAndCollective) {
  const std::string help = help_text();
  for (const core::DType dtype : core::all_dtypes) EXPECT_NE(help.find(core::name(dtype)), std::string::npos);
  for (const comm::ReduceOp op : comm::all_reduce_ops) EXPECT_NE(help.find(comm::name(op)), std::string::npos);
  for (const comm::Collective c : comm::all_collectives) EXPECT_NE(help.find(comm::name(c)), std::string::npos);
}

TEST(Texts, TheListIsTheRegistry) {
  const std::string list = list_text();
  for (const comm::Algorithm& algorithm : comm::algorithms()) {
    EXPECT_NE(list.find(algorithm.name), std::string::npos);
    EXPECT_NE(list.find(algorithm.steps), std::string::npos);
    EXPECT_NE(list.find(algorithm.bytes), std::string::npos);
  }
}

TEST(Texts, TheColumnsOfTheListAreAligned) {
  std::istringstream lines{list_text()};
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  const std::size_t bytes = line.find("bytes per rank");
  const std::size_t what = line.find("what it is");
  for (const comm::Algorithm& algorithm : comm::algorithms()) {
    std::getline(lines, line);
    EXPECT_EQ(line.find(algorithm.bytes, bytes), bytes) << line;
    EXPECT_EQ(line.find(algorithm.summary), what) << line;
  }
}

TEST(Texts, EachTaskHasItsOwn) {
  EXPECT_EQ(text_for(Task::help), help_text());
  EXPECT_EQ(text_for(Task::list), list_text());
  EXPECT_NE(text_for(Task::version).find(core::version()), std::string::npos);
  EXPECT_EQ(text_for(Task::measure), "");
  EXPECT_EQ(text_for(Task::demo), "");
}

}  // namespace
}  // namespace lockstep::reduce_all
