#include "runtime/together.hpp"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>

#include "core/error.hpp"
#include "runtime/session.hpp"

namespace lockstep::runtime {
namespace {

core::Problem name_rank(core::Problem problem, const Communicator& world) {
  if (world.n_ranks() > 1) problem.what = fmt::format("rank {} on {}: {}", world.rank(), host_name(), problem.what);
  return problem;
}

}  // namespace

Speaker find_speaker(const Communicator& world, const std::optional<core::Error>& mine) {
  const core::ExitCode my_code = mine ? mine->code() : core::ExitCode::ok;
  const auto codes = gather_values(world, std::span{&my_code, 1});
  Speaker speaker;
  for (std::size_t rank = 0; rank < codes.size() && speaker.rank < 0; ++rank)
    if (codes[rank] != core::ExitCode::ok) speaker = {static_cast<int>(rank), codes[rank]};
  return broadcast_value(world, speaker);
}

void fail_together(const Communicator& world, const std::optional<core::Error>& mine) {
  const Speaker speaker = find_speaker(world, mine);
  if (speaker.rank < 0) return;
  core::Problem problem = mine ? mine->problem() : core::Problem{};
  if (speaker.code == core::ExitCode::system) problem = name_rank(problem, world);
  for (std::string* field : {&problem.what, &problem.where, &problem.expected, &problem.fix})
    *field = world.broadcast(*field, speaker.rank);
  throw core::Error{speaker.code, problem};
}

void together(const Communicator& world, const std::function<void()>& work) {
  fail_together(world, core::failure_of(work));
}

}  // namespace lockstep::runtime
