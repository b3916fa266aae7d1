#include "reduce_all/participants.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::reduce_all {

bool is_the_librarys(std::string_view name) noexcept {
  const comm::Algorithm* const algorithm = comm::find_algorithm(name);
  return algorithm != nullptr && algorithm->needs == comm::Needs::mpi_processes;
}

std::vector<Participant> find_participants(const Options& options, const comm::Transport& transport) {
  const auto is_named = [&](std::string_view name) { return std::ranges::count(options.algorithm, name) > 0; };
  std::vector<Participant> participants;
  for (const comm::Algorithm& algorithm : comm::algorithms()) {
    if (!is_named(algorithm.name) && !options.algorithm.empty()) continue;
    const std::optional<std::string> obstacle = comm::obstacle(algorithm, {options.collective}, transport);
    if (!obstacle)
      participants.push_back({&algorithm});
    else if (is_named(algorithm.name))
      core::fail_usage({.what = fmt::format("{} {}", algorithm.name, *obstacle),
                        .where = "--algorithm",
                        .expected = "algorithms that can do this call on these ranks",
                        .fix = "leave it out, or use --algorithm all for all that apply"});
  }
  if (options.algorithm.empty() || is_named(auto_name)) participants.push_back({});
  return participants;
}

std::string describe_auto(std::span<const comm::Call> calls, std::span<const int> nodes) {
  std::string text;
  comm::Choice before;
  for (const comm::Call& call : calls) {
    if (call.dtype != calls.front().dtype || call.op != calls.front().op) break;
    const comm::Choice choice = comm::choose(call, nodes, false);
    if (choice.algorithm == before.algorithm) continue;
    text += before.algorithm == nullptr
                ? std::string{choice.algorithm->name}
                : fmt::format(", {} from {} on", choice.algorithm->name, core::format_bytes(call.bytes()));
    before = choice;
  }
  return text + (before.is_fused ? " (there in one pass with the update)" : "");
}

}  // namespace lockstep::reduce_all
