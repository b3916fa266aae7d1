// gpu_tests: tests on the first GPU and with cuDNN what other test programs test on a recorder. Exit code 77 without a
// GPU.
#include <gtest/gtest.h>

#include <cstdlib>

#include "gpu/use_gpu.hpp"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  setenv("NVIDIA_TF32_OVERRIDE", "0", 1);  // cuDNN then multiplies in float32, so errors come from rounding only
  if (!::testing::GTEST_FLAG(list_tests) && !lockstep::test::use_gpu()) return lockstep::test::skipped;
  return RUN_ALL_TESTS();
}
