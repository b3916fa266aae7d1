#include "reduce_all/limit.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/device_plan.hpp"
#include "comm/loops.hpp"
#include "core/error.hpp"

namespace lockstep::reduce_all {
namespace {

class CopyPlan final : public comm::Plan {
 public:
  explicit CopyPlan(CopyKind kind) : kind_{kind} {}

  void bind(std::span<const std::byte> input, std::span<std::byte> output) override {
    core::require(input.size() == output.size(), "source and target of a copy have the same size");
    input_ = input;
    output_ = output;
  }
  void run() override {
    if (kind_ == CopyKind::streaming)
      comm::loops().copy_streaming(output_.data(), input_.data(), input_.size());
    else
      std::memcpy(output_.data(), input_.data(), input_.size());
  }
  void begin() override { run(); }
  bool test() override { return true; }
  void wait() override {}

 private:
  CopyKind kind_;
  std::span<const std::byte> input_;
  std::span<std::byte> output_;
};

class ReadingPlan final : public comm::Plan {
 public:
  ReadingPlan(comm::CoreProbe& probe, core::Bytes bytes) : probe_{probe}, bytes_{bytes} {}

  void bind(std::span<const std::byte>, std::span<std::byte>) override {}
  void run() override {
    begin();
    wait();
  }
  void begin() override { probe_.write(bytes_); }
  bool test() override { return false; }
  void wait() override { probe_.read(); }

 private:
  comm::CoreProbe& probe_;
  core::Bytes bytes_;
};

constexpr core::Bytes least_read{64 << 10};
constexpr core::Bytes least_exchanged{4 << 20};
constexpr core::Bytes most_exchanged{64 << 20};

double seconds_of_copying(const comm::Call& call, core::Seconds whole, int n_ranks) {
  return whole.value * (call.collective == comm::Collective::all_reduce ? 1.0 : (1.0 + 1.0 / n_ranks) / 2);
}

double seconds_of_reading(const comm::Call& call, const LimitTimes& times, int n_ranks) {
  if (times.read.value == 0) return 0;
  // Ranks wait for each other only if every rank needs something of every other one.
  const bool all_wait =
      call.collective == comm::Collective::all_reduce || call.n_elements >= static_cast<std::size_t>(n_ranks);
  const double first_line = all_wait ? std::min(times.one_way.value, times.reading.value) : 0;
  const auto needed = static_cast<double>(bytes_from_others(call, n_ranks).value);
  return first_line + (times.reading.value - first_line) * needed / static_cast<double>(times.read.value);
}

double seconds_over_links(const comm::Call& call, const LimitTimes& times, int n_ranks) {
  if (times.exchanged.value == 0) return 0;
  const auto needed = static_cast<double>(bytes_over_links(call, n_ranks, times.switches_add).value);
  return times.exchanging.value * needed / static_cast<double>(times.exchanged.value);
}

}  // namespace

std::unique_ptr<comm::Plan> make_copy_plan(CopyKind kind) { return std::make_unique<CopyPlan>(kind); }

std::unique_ptr<comm::Plan> make_reading_plan(comm::CoreProbe& probe, core::Bytes bytes) {
  return std::make_unique<ReadingPlan>(probe, bytes);
}

core::Bytes bytes_from_others(const comm::Call& call, int n_ranks) {
  const auto n = static_cast<std::uint64_t>(n_ranks);
  const std::uint64_t n_halves = call.collective == comm::Collective::all_reduce ? 2 : 1;
  return {n_halves * call.bytes().value / n * (n - 1)};
}

core::Bytes bytes_to_read(const comm::Call& call, int n_ranks, core::Bytes room) {
  const core::Bytes needed = bytes_from_others(call, n_ranks);
  return needed > room ? core::Bytes{} : std::max(needed, least_read);
}

core::Bytes bytes_over_links(const comm::Call& call, int n_ranks, bool switches_add) {
  const bool is_once = switches_add && call.collective == comm::Collective::all_reduce && n_ranks > 1;
  return is_once ? call.bytes() : bytes_from_others(call, n_ranks);
}

core::Bytes bytes_to_exchange(const comm::Call& call, int n_ranks) {
  const core::Bytes bytes = std::clamp(bytes_from_others(call, n_ranks), least_exchanged, most_exchanged);
  constexpr std::uint64_t unit = comm::exchange_alignment;
  return {(bytes.value + unit - 1) / unit * unit};
}

core::Bytes largest_exchange(std::span<const comm::Call> calls, int n_ranks) {
  core::Bytes largest;
  for (const comm::Call& call : calls) largest = std::max(largest, bytes_to_exchange(call, n_ranks));
  return largest;
}

std::string_view name(LimitedBy by) noexcept {
  switch (by) {
    case LimitedBy::cores: return "cores";
    case LimitedBy::links: return "links";
    case LimitedBy::copying: break;
  }
  return "copying";
}

Limit find_limit(const comm::Call& call, const LimitTimes& times, int n_ranks) {
  double slowest = seconds_of_copying(call, times.copying, n_ranks);
  LimitedBy by = LimitedBy::copying;
  for (const auto& [seconds, what] : {std::pair{seconds_of_reading(call, times, n_ranks), LimitedBy::cores},
                                      {seconds_over_links(call, times, n_ranks), LimitedBy::links}})
    if (seconds > slowest) {
      slowest = seconds;
      by = what;
    }
  return {core::gigabytes_per_second(call.bytes(), {slowest}), by};
}

}  // namespace lockstep::reduce_all
