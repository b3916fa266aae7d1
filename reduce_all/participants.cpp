#include "reduce_all/participants.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::reduce_all {
namespace {

std::string fix_for(const comm::Algorithm& algorithm, comm::Devices devices) {
  const bool is_on_host = devices == comm::Devices::none;
  if (algorithm.is_for_devices() != is_on_host) return "leave it out, or use --algorithm all for all that support them";
  return is_on_host ? "use --device cuda where there are GPUs, or leave it out" : "use --device host, or leave it out";
}

}  // namespace

bool is_the_librarys(std::string_view name) noexcept {
  const comm::Algorithm* const algorithm = comm::find_algorithm(name);
  return algorithm != nullptr && algorithm->needs == comm::Needs::mpi_processes;
}

const comm::Algorithm& Participant::runs(const comm::Call& call, const comm::Transport& transport,
                                         comm::Devices devices) const {
  if (!is_auto()) return *algorithm;
  if (devices != comm::Devices::none) return comm::choose_for_devices(call, transport, devices);
  return *comm::choose(call, transport.nodes()).algorithm;
}

std::vector<Participant> find_participants(const Options& options, std::span<const comm::Call> calls,
                                           const comm::Transport& transport, comm::Devices devices) {
  const auto is_named = [&](std::string_view name) { return std::ranges::count(options.algorithm, name) > 0; };
  std::vector<Participant> participants;
  for (const comm::Algorithm& algorithm : comm::algorithms()) {
    if (options.algorithm.empty() ? algorithm.is_variant : !is_named(algorithm.name)) continue;
    std::optional<std::string> obstacle;
    bool does_any = false;
    for (const comm::Call& call : calls) {
      auto found = comm::obstacle(algorithm, call, transport, devices);
      does_any = does_any || !found;
      if (found && !obstacle) obstacle = std::move(found);
    }
    if (is_named(algorithm.name) && obstacle)
      core::fail_usage({.what = fmt::format("{} {}", algorithm.name, *obstacle),
                        .where = "--algorithm",
                        .expected = "algorithms that support these calls on these ranks",
                        .fix = fix_for(algorithm, devices)});
    if (does_any) participants.push_back({&algorithm});
  }
  if (options.algorithm.empty() || is_named(auto_name)) participants.push_back({});
  return participants;
}

std::string describe_auto(std::span<const comm::Call> calls, const comm::Transport& transport, comm::Devices devices) {
  const Participant automatic;
  std::string text;
  const comm::Algorithm* before = nullptr;
  for (const comm::Call& call : calls) {
    if (call.dtype != calls.front().dtype || call.op != calls.front().op) break;
    const comm::Algorithm* const now = &automatic.runs(call, transport, devices);
    if (now == before) continue;
    text += before == nullptr ? std::string{now->name}
                              : fmt::format(", {} from {} on", now->name, core::format_bytes(call.bytes()));
    before = now;
  }
  const bool is_fused = devices == comm::Devices::none && comm::choose(calls.front(), transport.nodes()).is_fused;
  return text + (is_fused ? " (in training, in one pass with the update)" : "");
}

}  // namespace lockstep::reduce_all
