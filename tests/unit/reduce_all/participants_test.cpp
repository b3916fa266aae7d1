#include "reduce_all/participants.hpp"

#include <gtest/gtest.h>

#include "comm/transport_threads.hpp"
#include "core/error.hpp"

namespace lockstep::reduce_all {
namespace {

std::vector<std::string> names(const Options& options, const std::vector<int>& nodes) {
  std::vector<std::string> result;
  comm::run_as_threads(nodes, [&](comm::Transport& transport) {
    const auto participants = find_participants(options, transport);
    if (transport.rank() != 0) return;
    for (const Participant& participant : participants) result.emplace_back(participant.name());
  });
  return result;
}

using Names = std::vector<std::string>;

TEST(Participants, AreAllThatApplyAndAuto) {
  EXPECT_EQ(names({}, {0, 0}), (Names{"ring", "recursive_doubling", "rabenseifner", "tree", "shm", "auto"}));
  EXPECT_EQ(names({}, {0, 1}), (Names{"ring", "recursive_doubling", "rabenseifner", "tree", "hierarchical", "auto"}));
}

TEST(Participants, AreThoseNamed) {
  Options options;
  options.algorithm = {"auto"};
  EXPECT_EQ(names(options, {0, 1}), Names{"auto"});
  options.algorithm = {"auto", "ring"};
  EXPECT_EQ(names(options, {0, 1}), (Names{"ring", "auto"}));
  options.algorithm = {"shm"};
  EXPECT_THROW(names(options, {0, 1}), core::Error);
}

TEST(Participants, AutoRunsWhatIsChosenForTheCall) {
  const Participant automatic{};
  const std::vector<int> apart{0, 1, 2};
  EXPECT_EQ(automatic.runs({.n_elements = 1}, apart).name, "recursive_doubling");
  EXPECT_EQ(automatic.runs({.n_elements = 1 << 20}, apart).name, "ring");
  const Participant ring{comm::find_algorithm("ring")};
  EXPECT_EQ(ring.runs({.n_elements = 1}, apart).name, "ring");
}

TEST(Participants, AutoIsDescribedBySize) {
  const std::vector<comm::Call> calls = parse_command_line({"-d", "float32,int8"}).calls;
  EXPECT_EQ(describe_auto(calls, std::vector{0, 0}), "shm (there in one pass with the update)");
  EXPECT_EQ(describe_auto(calls, std::vector{0, 0, 1}), "recursive_doubling, hierarchical from 32 KiB on");
}

}  // namespace
}  // namespace lockstep::reduce_all
