#include "data/load/pipeline.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace lockstep::data {
namespace {

// No thread can be started from now on; root is not bound by the limit, so it becomes somebody else.
bool forbid_threads() {
  constexpr uid_t nobody = 65534;
  if (getuid() == 0 && setresuid(nobody, nobody, nobody) != 0) return false;
  const rlimit limit{1, 1};
  return setrlimit(RLIMIT_NPROC, &limit) == 0;
}

// 0 if all pieces of ten batches were done; 1 if not.
[[noreturn]] void run_without_threads() {
  if (!forbid_threads()) std::_Exit(0);
  std::atomic<int> n_done = 0;
  Pipeline pipeline{4, 3, 2, [&](const Pipeline::Piece&) { ++n_done; }};
  pipeline.start(0, 10);
  while (pipeline.take()) {
  }
  std::_Exit(n_done == 20 ? 0 : 1);
}

TEST(PipelineDeathTest, WithoutThreadsTheCallerDoesTheWork) {
  EXPECT_EXIT(run_without_threads(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lockstep::data
