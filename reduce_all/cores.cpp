#include "reduce_all/cores.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/statistics.hpp"
#include "core/timer.hpp"
#include "runtime/memory.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr core::Bytes header_read{64 << 10};
constexpr std::size_t n_readings = 31;

// As long as the inputs and outputs of all ranks fit into the last-level cache; for larger vectors, copying is the
// limit.
core::Bytes readable(int n_ranks) {
  const std::uint64_t share = runtime::last_level_cache().value / (2 * static_cast<std::uint64_t>(n_ranks));
  return {std::clamp(share, std::uint64_t{256} << 10, std::uint64_t{8} << 20) / 4096 * 4096};
}

}  // namespace

CoreWatch::CoreWatch(const runtime::Communicator& world, comm::Transport& transport, bool oversubscribed,
                     Progress& progress, bool is_on_host)
    : world_{world}, progress_{progress}, largest_read_{readable(world.n_ranks())} {
  if (world.n_ranks() == 1 || !is_on_host) return;
  if (oversubscribed) {
    why_off_ = "not measured, because ranks share cores";
    return;
  }
  const auto complaint = core::complaint_of([&] { probe_.emplace(transport, largest_read_); });
  if (world.any(complaint.has_value()))
    why_off_ = "not measured, because no shared memory is left";
  else if (!world.any(probe_->has_neighbour()))
    why_off_ = "not measured, because no two ranks are on one node";
  if (*why_off_ != '\0') probe_.reset();
}

void CoreWatch::settle() {
  if (!is_on()) return;
  has_moved_ = false;
  look();
  first_ns_ = shortest_ns_ = last_ns_;
}

bool CoreWatch::have_moved() {
  if (!is_on() || has_moved_) return has_moved_;
  look();
  if (world_.any(is_elsewhere())) {
    look();
    has_moved_ = world_.any(is_elsewhere());
  }
  return has_moved_;
}

void CoreWatch::look() {
  progress_.beat();
  const auto time = probe_->round_trip();
  last_ns_ = time ? progress_.drilled_distance(time->value * 1e9) : 0;
  shortest_ns_ = std::min(shortest_ns_, last_ns_);
}

bool CoreWatch::is_elsewhere() const {
  return last_ns_ > first_ns_ * another_distance || last_ns_ * another_distance < first_ns_;
}

std::optional<CoreReach> CoreWatch::reach() {
  if (!is_on()) return std::nullopt;
  settle();
  std::array<double, n_readings> seconds{};
  for (double& one : seconds) {
    probe_->write(header_read);
    world_.barrier();
    const core::Stopwatch watch;
    probe_->read();
    one = watch.elapsed().value;
  }
  const double median = core::summarize(seconds).median;
  const std::vector<double> of_all = runtime::gather_values(world_, std::span<const double>{&median, 1});
  const double slowest = of_all.empty() ? 0 : *std::max_element(of_all.begin(), of_all.end());
  return CoreReach{at_first(), header_read, core::gigabytes_per_second(header_read, {slowest})};
}

CoreDistance CoreWatch::at_first() const { return over_pairs(first_ns_); }
CoreDistance CoreWatch::at_last() const { return over_pairs(last_ns_); }
CoreDistance CoreWatch::shortest() const { return over_pairs(shortest_ns_); }

CoreDistance CoreWatch::over_pairs(double mine_ns) const {
  std::vector<double> pairs = runtime::gather_values(world_, std::span<const double>{&mine_ns, 1});
  std::erase(pairs, 0.0);
  if (pairs.empty()) return {};
  const core::Summary summary = core::summarize(pairs);
  return {summary.min, summary.median, summary.max};
}

}  // namespace lockstep::reduce_all
