#include "comm/distance.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/flag.hpp"
#include "core/statistics.hpp"
#include "core/timer.hpp"

namespace lockstep::comm {
namespace {

constexpr std::size_t line_bytes = 64;
// Runs are so short that a lost time slice spoils only one of them; 0.2 ms in all between near cores.
constexpr std::size_t n_runs = 31;
constexpr int trips_per_run = 64;
constexpr int trips_per_run_on_shared_cores = 2;

// Reads one word of every line, in four streams. On an EPYC this is the fastest way or within 8 % of it, between near
// cores (52 GB/s of 64 KiB) and far ones (22 GB/s). Wider loads gain nothing; prefetches gain 10 % between far cores
// and lose as much between near ones.
std::uint64_t sum_of_lines(const std::byte* from, std::size_t bytes) {
  constexpr std::size_t n_streams = 4;
  std::array<std::uint64_t, n_streams> sums{};
  const std::size_t n_lines = (bytes + line_bytes - 1) / line_bytes;
  const std::size_t stride = n_lines / n_streams;
  const auto word = [from](std::size_t line) {
    std::uint64_t value;
    std::memcpy(&value, from + line * line_bytes, sizeof(value));
    return value;
  };
  for (std::size_t line = 0; line < stride; ++line)
    for (std::size_t i = 0; i < n_streams; ++i) sums[i] += word(i * stride + line);
  for (std::size_t line = n_streams * stride; line < n_lines; ++line) sums[0] += word(line);
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

/// A rank's flags; each has one writer, the rank itself.
struct CoreProbe::Board {
  Flag ping;     ///< trips led
  Flag pong;     ///< trips followed
  Flag written;  ///< calls of write()
  Flag read;     ///< calls of read()
};

CoreProbe::CoreProbe(Transport& transport, core::Bytes largest_read)
    : node_{transport.split(transport.nodes()[static_cast<std::size_t>(transport.rank())], transport.rank())} {
  if (!has_neighbour()) return;
  const std::size_t room = (largest_read.value + flag_stride - 1) / flag_stride * flag_stride;
  segment_ = node_->share(sizeof(Board) + room);
  right_ = (node_->rank() + 1) % node_->n_ranks();
  left_ = (node_->rank() + node_->n_ranks() - 1) % node_->n_ranks();
}

CoreProbe::Board& CoreProbe::board(int rank) const noexcept {
  return *reinterpret_cast<Board*>(segment_->part(rank).data());
}

std::byte* CoreProbe::data(int rank) const noexcept { return segment_->part(rank).data() + sizeof(Board); }

std::optional<core::Seconds> CoreProbe::round_trip() {
  if (!has_neighbour()) return std::nullopt;
  const int n_ranks = node_->n_ranks();
  const auto phase_led_by = [n_ranks](int rank) { return rank == n_ranks - 1 && rank % 2 == 0 ? 2 : rank % 2; };
  const int n_phases = n_ranks == 2 ? 1 : 2 + n_ranks % 2;
  std::optional<core::Seconds> result;
  for (int phase = 0; phase < n_phases; ++phase) {
    if (phase_led_by(node_->rank()) == phase)
      result = lead();
    else if (phase_led_by(left_) == phase)
      follow();
  }
  return result;
}

core::Seconds CoreProbe::lead() {
  Flag& ping = board(node_->rank()).ping;
  const Flag& pong = board(right_).pong;
  const int n_trips = node_->spin_limit() > 0 ? trips_per_run : trips_per_run_on_shared_cores;
  std::array<double, n_runs> seconds{};
  for (double& one : seconds) {
    const core::Stopwatch watch;
    for (int i = 0; i < n_trips; ++i) {
      ping.publish(++n_led_);
      wait_until(*node_, [&] { return pong.reached(n_led_); });
    }
    one = watch.elapsed().value / n_trips;
  }
  std::sort(seconds.begin(), seconds.end());
  return {core::quantile(seconds, 0.25)};
}

void CoreProbe::follow() {
  const Flag& ping = board(left_).ping;
  Flag& pong = board(node_->rank()).pong;
  const int n_trips = node_->spin_limit() > 0 ? trips_per_run : trips_per_run_on_shared_cores;
  for (std::uint64_t end = n_followed_ + n_runs * static_cast<std::uint64_t>(n_trips); n_followed_ < end;) {
    ++n_followed_;
    wait_until(*node_, [&] { return ping.reached(n_followed_); });
    pong.publish(n_followed_);
  }
}

void CoreProbe::write(core::Bytes bytes) {
  if (!has_neighbour()) return;
  bytes_ = bytes.value;
  wait_until(*node_, [&] { return board(left_).read.reached(n_written_); });  // the reader is done with the old content
  ++n_written_;
  std::memset(data(node_->rank()), static_cast<int>(n_written_ % 256), bytes_);
  board(node_->rank()).written.publish(n_written_);
  wait_until(*node_, [&] { return board(right_).written.reached(n_written_); });
}

void CoreProbe::read() {
  if (!has_neighbour()) return;
  checked_ += sum_of_lines(data(right_), bytes_);
  board(node_->rank()).read.publish(n_written_);
}

}  // namespace lockstep::comm
