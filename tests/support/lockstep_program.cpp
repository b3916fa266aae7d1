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

}  // namespace

Ended run_lockstep(const std::vector<std::string>& arguments, const std::vector<int>& nodes, const core::Clock& clock) {
  return run_ranks(nodes, [&](const runtime::Communicator& world) {
    const training::Invocation invocation = training::parse_command_line(arguments);
    const runtime::Session session{world, clock};
    runtime::Watchdog watchdog{{}, {0}, invocation.drill.get()};
    watchdog.set_rank(world.rank(), world.n_ranks());
    return training::run_on_ranks(session, invocation, {}, watchdog);
  });
}

Ended lockstep_on(std::vector<std::string> arguments, int n_ranks) {
  const bool trains = !arguments.empty() && arguments.front() == "train";
  if (trains && std::ranges::find(arguments, "--threads") == arguments.end())
    arguments.insert(arguments.end(), {"--threads", "1"});
  return run_lockstep(arguments, std::vector<int>(static_cast<std::size_t>(n_ranks)));
}

}  // namespace lockstep::support
