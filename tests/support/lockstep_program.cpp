#include "support/lockstep_program.hpp"

#include <algorithm>
#include <memory>

#include "nn/device.hpp"
#include "runtime/session.hpp"
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

RunRank by_rank(const std::vector<std::string>& arguments, const core::Clock& clock) {
  return [&](const runtime::Communicator& world) {
    const training::Invocation invocation = training::parse_command_line(arguments);
    const runtime::Session session{world, clock};
    runtime::Watchdog watchdog{{}, {0}, invocation.drill.get()};
    watchdog.set_rank(world.rank(), world.n_ranks());
    return training::run_on_ranks(session, invocation, {}, watchdog);
  };
}

void name_threads(std::vector<std::string>& arguments) {
  const bool trains = !arguments.empty() && arguments.front() == "train";
  const bool tests = std::ranges::find(arguments, "--self-test") != arguments.end();
  if (trains && !tests && std::ranges::find(arguments, "--threads") == arguments.end())
    arguments.insert(arguments.end(), {"--threads", "1"});
}

}  // namespace

Ended run_lockstep(const std::vector<std::string>& arguments, const std::vector<int>& nodes, const core::Clock& clock) {
  return run_ranks(nodes, by_rank(arguments, clock));
}

Ended lockstep_on(std::vector<std::string> arguments, int n_ranks) {
  name_threads(arguments);
  return run_lockstep(arguments, std::vector<int>(static_cast<std::size_t>(n_ranks)));
}

Ended lockstep_together(std::vector<std::string> arguments, const runtime::Communicator& world) {
  name_threads(arguments);
  return run_processes(world, by_rank(arguments, core::real_clock()));
}

}  // namespace lockstep::support
