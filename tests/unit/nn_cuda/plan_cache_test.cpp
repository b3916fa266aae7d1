// What is stored about plans on disk, and what is not trusted.
#include "nn/cuda/plan_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

#include "unit/io/temporary_folder.hpp"

namespace lockstep::nn::cuda {
namespace {

namespace fs = std::filesystem;

StoredPlan plan_of(const std::string& name, double seconds, std::size_t n_bytes) {
  StoredPlan plan{name, seconds, {}};
  for (std::size_t i = 0; i < n_bytes; ++i) plan.code.push_back(static_cast<std::byte>(i * 7));
  return plan;
}

const StoredPlans two{{"conv a", plan_of("eng1", 1e-3, 2000)}, {"conv b", plan_of("eng2_k2=0", 2e-3, 0)}};

class PlanCacheTest : public ::testing::Test {
 protected:
  PlanCache open(const std::string& machine = "GPU") const { return {folder_ + "/deep/down", machine}; }
  std::string file() const {
    return fs::directory_iterator { folder_ + "/deep/down" } -> path().string();
  }

  io::TemporaryFolder temporary_{};
  std::string folder_ = temporary_.path();
};

TEST(Plans, AreReadAsTheyWereWritten) {
  EXPECT_EQ(read_plans(write_plans("GPU", two), "GPU"), two);
  EXPECT_EQ(read_plans(write_plans("GPU", {}), "GPU"), StoredPlans{});
}

TEST(Plans, AreOfOneMachine) { EXPECT_FALSE(read_plans(write_plans("GPU, driver 1", two), "GPU, driver 2")); }

TEST(Plans, AreNotReadIfDamaged) {
  const std::vector<std::byte> whole = write_plans("GPU", two);
  for (std::size_t n = 0; n < whole.size(); n += 11)
    EXPECT_FALSE(read_plans(std::span{whole}.first(n), "GPU")) << n << " bytes";
  for (std::size_t i = 0; i < whole.size(); i += 11) {
    std::vector<std::byte> damaged = whole;
    damaged[i] ^= std::byte{4};
    EXPECT_FALSE(read_plans(damaged, "GPU")) << "byte " << i;
  }
  EXPECT_FALSE(
      read_plans(write_plans("GPU", {{"a", plan_of("eng1", std::numeric_limits<double>::quiet_NaN(), 1)}}), "GPU"));
}

TEST_F(PlanCacheTest, LastsFromRunToRun) {
  {
    PlanCache cache = open();
    EXPECT_EQ(cache.find("conv a"), nullptr);
    cache.add("conv a", two.at("conv a"));
    cache.save();
  }
  ASSERT_NE(open().find("conv a"), nullptr);
  EXPECT_EQ(*open().find("conv a"), two.at("conv a"));
  EXPECT_EQ(open("another GPU").find("conv a"), nullptr);
}

TEST_F(PlanCacheTest, KeepsWhatOthersFound) {
  PlanCache mine = open(), other = open();
  other.add("conv b", two.at("conv b"));
  other.save();
  mine.add("conv a", two.at("conv a"));
  mine.save();
  EXPECT_NE(open().find("conv a"), nullptr);
  EXPECT_NE(open().find("conv b"), nullptr);
}

TEST_F(PlanCacheTest, IsWrittenByManyAtOnce) {
  const auto write = [&](int number) {
    for (int i = 0; i < 20; ++i) {
      PlanCache cache = open();
      cache.add("conv " + std::to_string(number), plan_of("eng", i, 5000));
      cache.save();
    }
  };
  std::thread first{write, 1}, second{write, 2};
  first.join();
  second.join();
  const PlanCache cache = open();
  EXPECT_TRUE(cache.find("conv 1") != nullptr || cache.find("conv 2") != nullptr) << "one of the files, and whole";
  EXPECT_EQ(std::distance(fs::directory_iterator{folder_ + "/deep/down"}, {}), 1) << "no temporary is left";
}

TEST_F(PlanCacheTest, IsRebuiltIfDamaged) {
  PlanCache cache = open();
  cache.add("conv a", two.at("conv a"));
  cache.save();
  fs::resize_file(file(), 100);
  PlanCache again = open();
  EXPECT_EQ(again.find("conv a"), nullptr);
  again.add("conv b", two.at("conv b"));
  again.save();
  EXPECT_NE(open().find("conv b"), nullptr);
}

// For two names with one hash, or a renamed file.
TEST_F(PlanCacheTest, IsRebuiltIfOfAnotherGpu) {
  PlanCache cache = open();
  cache.add("conv a", two.at("conv a"));
  cache.save();
  const std::string path = file();
  fs::remove(path);
  PlanCache other = open("another GPU");
  other.add("conv a", two.at("conv b"));
  other.save();
  ASSERT_NE(file(), path);
  fs::rename(file(), path);
  PlanCache again = open();
  EXPECT_EQ(again.find("conv a"), nullptr);
  again.add("conv a", two.at("conv a"));
  again.save();
  ASSERT_NE(open().find("conv a"), nullptr);
  EXPECT_EQ(*open().find("conv a"), two.at("conv a"));
}

TEST_F(PlanCacheTest, IsNoneWhereItsFileCannotBeRead) {
  PlanCache cache = open();
  cache.add("conv a", two.at("conv a"));
  cache.save();
  const std::string path = file();
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_EQ(open().find("conv a"), nullptr);
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(open().find("conv a"), nullptr);
}

TEST_F(PlanCacheTest, DoesWithoutAFolder) {
  std::ofstream{folder_ + "/file"} << "no folder";
  PlanCache cache{folder_ + "/file", "GPU"};
  cache.add("conv a", two.at("conv a"));
  testing::internal::CaptureStderr();
  cache.save();
  cache.add("conv b", two.at("conv b"));
  cache.save();
  const std::string told = testing::internal::GetCapturedStderr();
  const std::size_t at = told.find("LOCKSTEP_PLAN_CACHE to a folder, or to off");
  EXPECT_NE(at, std::string::npos) << told;
  EXPECT_EQ(told.find("LOCKSTEP_PLAN_CACHE to a folder, or to off", at + 1), std::string::npos) << "told once";
  EXPECT_NE(cache.find("conv b"), nullptr);
}

TEST(PlanCacheFolder, IsTheUsersChoice) {
  setenv("HOME", "/home/me", 1);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("LOCKSTEP_PLAN_CACHE");
  EXPECT_EQ(plan_cache_folder(), "/home/me/.cache/lockstep");
  setenv("XDG_CACHE_HOME", "/scratch/me", 1);
  EXPECT_EQ(plan_cache_folder(), "/scratch/me/lockstep");
  setenv("LOCKSTEP_PLAN_CACHE", "/plans", 1);
  EXPECT_EQ(plan_cache_folder(), "/plans");
  setenv("LOCKSTEP_PLAN_CACHE", "off", 1);
  EXPECT_EQ(plan_cache_folder(), "");
}

}  // namespace
}  // namespace lockstep::nn::cuda
