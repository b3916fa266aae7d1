#include "core/error.hpp"

#include <gtest/gtest.h>

#include <string>

#include "thrown.hpp"

namespace lockstep::core {
namespace {

TEST(Error, DescribesEveryFieldOnItsLine) {
  EXPECT_EQ(describe({.what = "unknown algorithm 'rnig'",
                      .where = "--algorithm",
                      .expected = "one of mpi, ring, shm",
                      .fix = "did you mean 'ring'?"}),
            "unknown algorithm 'rnig' (--algorithm)\n"
            "  expected: one of mpi, ring, shm\n"
            "  fix: did you mean 'ring'?");
}

TEST(Error, LeavesEmptyFieldsOut) {
  EXPECT_EQ(describe({.what = "broken"}), "broken");
  EXPECT_EQ(describe({.what = "broken", .fix = "mend it"}), "broken\n  fix: mend it");
  EXPECT_EQ(describe({.what = "broken", .where = "a.json", .expected = "{}"}), "broken (a.json)\n  expected: {}");
}

TEST(Error, ShowsControlCharactersOfNames) {
  EXPECT_EQ(describe({.what = "cannot open 'a\x1b[2J\x07'", .where = "b\r", .fix = "rename it"}),
            "cannot open 'a\\x1b[2J\\x07' (b\\x0d)\n  fix: rename it");
}

TEST(Error, FailUsageCarriesTheProblemAndTheCaller) {
  int line = 0;
  const auto error = thrown_by([&] {
    line = __LINE__ + 1;
    fail_usage({.what = "'x' is not a size", .where = "-b", .expected = "a size"});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ExitCode::usage);
  EXPECT_EQ(error->problem().where, "-b");
  EXPECT_STREQ(error->what(), "'x' is not a size (-b)\n  expected: a size");
  EXPECT_EQ(error->location().line, line);
  EXPECT_TRUE(std::string{error->location().file}.ends_with("error_test.cpp"));
}

TEST(Error, FailSystemKeepsFileAndLineToItself) {
  int line = 0;
  const auto error = thrown_by([&] {
    line = __LINE__ + 1;
    fail_system("mmap: out of memory");
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ExitCode::system);
  EXPECT_STREQ(error->what(), "mmap: out of memory");
  EXPECT_EQ(error->location().line, line);
}

TEST(Error, RequireThrowsOnlyIfBroken) {
  EXPECT_NO_THROW(require(true, "one is one"));
  const auto error = thrown_by([] { require(false, "one is two"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ExitCode::system);
  EXPECT_NE(std::string{error->what()}.find("broken promise: one is two (error_test.cpp:"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::core
