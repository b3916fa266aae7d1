#include "reduce_all/participants.hpp"

#include <gtest/gtest.h>

#include "comm/transport_threads.hpp"
#include "core/error.hpp"

namespace lockstep::reduce_all {
namespace {

std::vector<std::string> names(const Options& options, const std::vector<int>& nodes,
                               comm::Devices devices = comm::Devices::none,
                               const std::vector<std::string>& arguments = {}) {
  const std::vector<comm::Call> calls = parse_command_line(arguments).calls;
  std::vector<std::string> result;
  comm::run_as_threads(nodes, [&](comm::Transport& transport) {
    const auto participants = find_participants(options, calls, transport, devices);
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

TEST(Participants, OnDevicesAreThoseForThem) {
  using comm::Devices;
  EXPECT_EQ(names({}, {0, 0}, Devices::shared), (Names{"staged", "auto"}));
  Options options;
  for (const char* const name : {"ring", "nccl", "nccl:ring/ll"}) {
    options.algorithm = {name};
    EXPECT_THROW(names(options, {0, 0}, Devices::shared), core::Error) << name;
  }
  options.algorithm = {"staged"};
  EXPECT_THROW(names(options, {0, 0}), core::Error);
  EXPECT_EQ(names(options, {0, 0}, Devices::own, {"-d", "all"}), Names{"staged"});
  if (comm::nccl_version().empty()) return;
  EXPECT_EQ(names({}, {0, 0}, Devices::own), (Names{"staged", "nccl", "auto"}));
  EXPECT_EQ(names({}, {0, 0}, Devices::own, {"-d", "all"}), (Names{"staged", "nccl", "auto"}));
  EXPECT_EQ(names({}, {0, 0}, Devices::own, {"-d", "int16"}), (Names{"staged", "auto"}));
  options.algorithm = {"nccl:ring/ll"};
  EXPECT_EQ(names(options, {0, 0}, Devices::own), Names{"nccl:ring/ll"});
  EXPECT_THROW(names(options, {0, 0}, Devices::own, {"-d", "all"}), core::Error);  // it does not support int16
}

TEST(Participants, ThoseBySwitchesNeedThem) {
  using comm::Devices;
  if (comm::nccl_version().empty()) return;
  Options options;
  options.algorithm = {"nccl:nvls"};
  EXPECT_EQ(names(options, {0, 0, 0}, Devices::switched), Names{"nccl:nvls"});
  EXPECT_THROW(names(options, {0, 0, 0}, Devices::own), core::Error);
  EXPECT_THROW(names(options, {0, 0, 0}, Devices::shared), core::Error);
  EXPECT_THROW(names(options, {0}, Devices::switched), core::Error);  // no other rank to add
  options.algorithm = {"nccl:nvlstree"};
  EXPECT_EQ(names(options, {0, 0, 0, 1, 1, 1}, Devices::switched), Names{"nccl:nvlstree"});
  EXPECT_THROW(names(options, {0, 0, 0}, Devices::switched), core::Error);
  EXPECT_THROW(names(options, {0, 0, 0, 1, 1, 1}, Devices::own), core::Error);
}

TEST(Participants, AutoRunsWhatIsChosenForTheCall) {
  comm::run_as_threads({0, 1, 2}, [](comm::Transport& apart) {
    const Participant automatic{};
    EXPECT_EQ(automatic.runs({.n_elements = 1}, apart).name, "recursive_doubling");
    EXPECT_EQ(automatic.runs({.n_elements = 1 << 20}, apart).name, "ring");
    EXPECT_EQ(automatic.runs({.n_elements = 1}, apart, comm::Devices::shared).name, "staged");
    const Participant ring{comm::find_algorithm("ring")};
    EXPECT_EQ(ring.runs({.n_elements = 1}, apart).name, "ring");
  });
}

TEST(Participants, AutoIsDescribedBySize) {
  const std::vector<comm::Call> calls = parse_command_line({"-d", "float32,int8"}).calls;
  const auto description = [&](const std::vector<int>& nodes) {
    std::string text;
    comm::run_as_threads(nodes, [&](comm::Transport& transport) {
      if (transport.rank() == 0) text = describe_auto(calls, transport);
    });
    return text;
  };
  EXPECT_EQ(description({0, 0}), "shm (in training, in one pass with the update)");
  EXPECT_EQ(description({0, 0, 1}), "recursive_doubling, hierarchical from 32 KiB on");
}

}  // namespace
}  // namespace lockstep::reduce_all
