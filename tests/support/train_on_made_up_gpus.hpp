// Trainings on made-up GPUs, and their output.
// Invariant: as in on_made_up_gpus.hpp.
// Used by tests/mpi.
#pragma once

#include <optional>
#include <regex>

#include "support/lockstep_program.hpp"
#include "support/on_made_up_gpus.hpp"

namespace lockstep::support {

inline Ended lockstep_line(const std::vector<std::string>& words, int /*n_ranks*/) {
  beat();
  return lockstep_together(words, world());
}

/// Collective: runs `lockstep train`, which must succeed.
inline Ended trained(const std::string& line) { return expect_done(lockstep_line, "train " + line); }

/// Collective: the same by the first rank alone, while others wait and get nothing.
inline std::optional<Ended> trained_alone(const std::string& line) {
  const auto part = world().split(world().rank() == 0 ? 0 : 1, world().rank());
  std::optional<Ended> ended;
  beat();
  if (world().rank() == 0)
    ended = expect_done([&](const auto& words, int) { return lockstep_together(words, *part); }, "train " + line);
  world().barrier();
  return ended;
}

/// The loss on the line of stdout that begins with `key`; 0 if there is none, as in a run without evaluation.
inline double loss_of(const Ended& ended, const std::string& key = "training") {
  std::smatch loss;
  const bool is_told = std::regex_search(ended.out, loss, std::regex{"(^|\n)" + key + " +loss ([^,\n]*)"});
  EXPECT_TRUE(is_told || key == "evaluation") << ended.out;
  return is_told ? std::stod(loss[2]) : 0;
}

/// The digest of --digest.
inline std::string digest_of(const Ended& ended) {
  std::string digest = ended.line("digest");
  EXPECT_NE(digest, "") << ended.out;
  return digest;
}

inline void expect_near(double value, double expected, double tolerance) {
  EXPECT_NEAR(value, expected, tolerance * expected);
}

}  // namespace lockstep::support
