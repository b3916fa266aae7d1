// GPUs as a program finds them, on machines with and without.
#include "runtime/gpu.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/error.hpp"

namespace lockstep::runtime {
namespace {

TEST(Gpus, AreThereOrItIsSaidWhyNot) {
  const GpuSurvey survey = survey_gpus();
  EXPECT_NE(survey.gpus.empty(), survey.obstacle.empty());
  EXPECT_EQ(survey.obstacle.empty(), survey.fix.empty());
  std::set<std::string> uuids;
  for (const Gpu& gpu : survey.gpus) {
    EXPECT_TRUE(uuids.insert(gpu.uuid).second) << gpu.uuid;
    EXPECT_EQ(gpu.uuid.size(), 40U) << gpu.uuid;
    EXPECT_GT(gpu.memory.value, 0U);
    EXPECT_GE(gpu.architecture, 50);
  }
}

TEST(Gpus, ThatAreNotThereCannotBeOpened) {
  const auto n = static_cast<int>(survey_gpus().gpus.size());
  EXPECT_THROW(static_cast<void>(open_gpu(n)), core::Error);
}

}  // namespace
}  // namespace lockstep::runtime
