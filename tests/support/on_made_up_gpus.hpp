// Whole commands on made-up GPUs, on the ranks of an MPI job, because a GPU belongs to a process, like NCCL's settings.
// Invariant: complaints of the GPUs fail the test; all ranks see the same texts and files.
// Used by tests/mpi.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/made_up_gpus.hpp"
#include "support/mpi_main.hpp"
#include "support/program.hpp"
#include "support/text.hpp"

namespace lockstep::support {

class OnMadeUpGpus : public InFolder {
 protected:
  OnMadeUpGpus() : InFolder{world()} {}
  void TearDown() override {
    for (const std::string& complaint : test::made_up_gpus_complain()) ADD_FAILURE() << complaint;
  }
};

/// A command and its expected output; for code 2 as in expect_refused().
struct Told {
  std::vector<int> n_ranks;  ///< of jobs that try it; others skip it
  std::string line;
  std::vector<std::string> says{};
  Variables::Values with{};
  int code = 0;
  std::vector<std::string> never{};
};

inline void expect_all(const Program& program, const std::vector<Told>& table) {
  for (const Told& told : table) {
    if (std::ranges::find(told.n_ranks, world().n_ranks()) == told.n_ranks.end()) continue;
    SCOPED_TRACE(told.line);
    const Variables variables{told.with};
    if (told.code == 2) {
      expect_refused(program, {told.line, told.says, world().n_ranks()});
      continue;
    }
    const Ended ended = program(words_of(told.line), world().n_ranks());
    expect_told(ended, told.code, told.says);
    for (const std::string& words : told.never) EXPECT_FALSE(has(ended.out + ended.err, words)) << words;
  }
}

}  // namespace lockstep::support
