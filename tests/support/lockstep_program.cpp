#include "support/lockstep_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "core/error.hpp"
#include "nn/device.hpp"
#include "support/ranks.hpp"
#include "training/command.hpp"

namespace lockstep::support {
namespace {

/// Kokkos starts once in a process, so the first run's device stays until the last test is over.
class HostLife : public testing::Environment {
 public:
  void SetUp() override { device_ = nn::open_device(1); }
  void TearDown() override { device_.reset(); }

 private:
  std::unique_ptr<nn::Device> device_;
};
const auto* const host_life = testing::AddGlobalTestEnvironment(new HostLife);

int run_rank(const runtime::Communicator& world, const std::vector<std::string>& arguments, const core::Clock& clock) {
  const training::Invocation invocation = training::parse_command_line(arguments);
  const runtime::Session session{world, clock};
  runtime::Watchdog watchdog{{}, {0}};
  watchdog.set_rank(world.rank(), world.n_ranks());
  return training::run_on_ranks(session, invocation, {}, watchdog);
}

}  // namespace

std::string Ended::line(const std::string& key) const {
  std::istringstream lines{out};
  for (std::string text; std::getline(lines, text);)
    if (text.starts_with(key + " ")) return text.substr(key.size() + 1);
  return {};
}

Ended run_lockstep(const std::vector<std::string>& arguments, const std::vector<int>& nodes, const core::Clock& clock) {
  std::vector<int> exit_codes(nodes.size());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::string failure;
  Ended ended;
  try {
    runtime::run_as_threads({.nodes = nodes, .patience = {300}}, [&](runtime::Communicator& world) {
      exit_codes[static_cast<std::size_t>(world.rank())] = run_rank(world, arguments, clock);
    });
    ended.exit_code = exit_codes.front();
    EXPECT_EQ(std::ranges::count(exit_codes, ended.exit_code), std::ssize(exit_codes)) << "ranks end differently";
  } catch (const core::Error& error) {  // the program would end the job by abort_job()
    ended.exit_code = core::to_int(error.code());
    failure = std::string{"error: "} + error.what() + "\n";
  }
  ended.out = testing::internal::GetCapturedStdout();
  ended.err = testing::internal::GetCapturedStderr() + failure;
  return ended;
}

std::vector<std::string> words_of(const std::string& words) {
  std::istringstream text{words};
  std::vector<std::string> all;
  for (std::string word; text >> word;) all.push_back(word);
  return all;
}

}  // namespace lockstep::support
