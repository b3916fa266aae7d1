// gpu_tests: what other test programs try on a recorder, on the first GPU and with cuDNN. Exit code 77 without a GPU.
#include <gtest/gtest.h>

#include "gpu/use_gpu.hpp"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!::testing::GTEST_FLAG(list_tests) && !lockstep::test::use_gpu()) return lockstep::test::skipped;
  return RUN_ALL_TESTS();
}
