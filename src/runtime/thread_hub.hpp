// Shared state of ranks that are threads: their messages, their meetings, and the counts.
// Invariant: one lock for everything, because this serves correctness and not speed; a rank that can never continue
// gets an error.
// Used by communicator_threads alone.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "runtime/communicator_threads.hpp"
#include "runtime/device.hpp"

namespace lockstep::runtime::threads {

struct Message {
  std::vector<std::byte> data;
  std::uint64_t step = 0;
};

/// Which queue a message belongs to: group, channel, sender, receiver (ranks of the group).
using Route = std::tuple<int, int, int, int>;

/// What a member contributes to a meeting.
struct Brought {
  std::int64_t color = 0;
  std::int64_t key = 0;
  std::size_t size = 0;
  std::vector<std::byte> data{};
};

/// Where the members of a group meet to make something; the last to arrive makes it for all.
struct Meeting {
  std::vector<Brought> brought;  ///< by member
  int n_arrived = 0;
  int n_left = 0;
  bool is_made = false;
  std::vector<int> groups;                     ///< split: the new group of each member
  std::shared_ptr<std::vector<Buffer>> parts;  ///< share: one buffer per member
};

/// A group of ranks: world ranks of the members, in order.
struct Group {
  std::vector<int> members;
};

/// The channel of control messages, which are not counted.
inline constexpr int control_channel = -1;

class Hub {
 public:
  explicit Hub(const ThreadsLayout& layout)
      : nodes_{layout.nodes},
        sockets_{layout.sockets},
        patience_{layout.patience.value},
        wake_(nodes_.size()),
        steps_(nodes_.size()),
        waiting_(nodes_.size()),
        read_from_(nodes_.size()) {
    sockets_.resize(nodes_.size());
    Group world;
    for (std::size_t r = 0; r < nodes_.size(); ++r) world.members.push_back(static_cast<int>(r));
    groups_.push_back(std::move(world));
  }

  void post(const Route& route, int world_rank, std::span<const std::byte> data) {
    const std::lock_guard lock{mutex_};
    const bool is_counted = std::get<1>(route) != control_channel;
    queues_[route].push_back(
        {{data.begin(), data.end()}, is_counted ? steps_[static_cast<std::size_t>(world_rank)] + 1 : 0});
    if (is_counted) {
      ++traffic_.messages;
      traffic_.bytes += data.size();
    }
    const Group& group = groups_[static_cast<std::size_t>(std::get<0>(route))];
    wake_[static_cast<std::size_t>(group.members[static_cast<std::size_t>(std::get<3>(route))])].notify_one();
  }

  /// Returns true if a message was there.
  bool take(const Route& route, int world_rank, std::span<std::byte> data) {
    const std::lock_guard lock{mutex_};
    if (queues_[route].empty()) return false;
    deliver(route, world_rank, data);
    return true;
  }

  void take_waiting(const Route& route, int world_rank, std::span<std::byte> data) {
    std::unique_lock lock{mutex_};
    await(lock, world_rank, fmt::format("a message from rank {} of its group", std::get<2>(route)),
          [&] { return !queues_[route].empty(); });
    deliver(route, world_rank, data);
  }

  /// Members of `group` meet for the `sequence`-th time; `make` runs once, in the last to arrive.
  template <class Make, class Result>
  auto meet(int group, int sequence, int rank, int world_rank, Brought brought, Make make, Result result) {
    std::unique_lock lock{mutex_};
    const std::pair key{group, sequence};
    const std::size_t n = groups_[static_cast<std::size_t>(group)].members.size();
    Meeting& meeting = meetings_[key];
    meeting.brought.resize(n);
    meeting.brought[static_cast<std::size_t>(rank)] = std::move(brought);
    if (++meeting.n_arrived == static_cast<int>(n)) {
      make(meeting);
      meeting.is_made = true;
      wake_all();
    } else {
      await(lock, world_rank, "the other ranks of its group", [&] { return meeting.is_made; });
    }
    auto mine = result(meeting);
    if (++meeting.n_left == static_cast<int>(n)) meetings_.erase(key);
    return mine;
  }

  int add_group(std::vector<int> members) {
    groups_.push_back({std::move(members)});
    return static_cast<int>(groups_.size()) - 1;
  }

  std::vector<int> members_of(int group) {
    const std::lock_guard lock{mutex_};
    return groups_[static_cast<std::size_t>(group)].members;
  }
  int node_of(int world_rank) const noexcept { return nodes_[static_cast<std::size_t>(world_rank)]; }
  core::Seconds patience() const noexcept { return {patience_.count()}; }

  /// Takes world ranks.
  void note_sharing(std::size_t n_bytes) { shared_.fetch_add(n_bytes, std::memory_order_relaxed); }
  void note_reading(int reader, int writer, std::size_t n_bytes) {
    if (sockets_[static_cast<std::size_t>(reader)] != sockets_[static_cast<std::size_t>(writer)])
      read_across_.fetch_add(n_bytes, std::memory_order_relaxed);
    read_from_[static_cast<std::size_t>(reader)].insert(writer);  // by the reader's own thread only
  }

  void throw_if_failed() {
    const std::lock_guard lock{mutex_};
    if (failure_) core::fail_system("another rank failed");
  }

  void fail(std::exception_ptr failure) {
    const std::lock_guard lock{mutex_};
    if (!failure_) failure_ = std::move(failure);
    wake_all();
  }

  void leave() {
    const std::lock_guard lock{mutex_};
    ++n_gone_;
    wake_all();
  }

  /// Called after the last rank: rethrows, or checks that no message was left.
  Traffic finish() {
    if (failure_) std::rethrow_exception(failure_);
    for (const auto& [route, queue] : queues_) {
      if (!queue.empty())
        core::fail_system(fmt::format("{} message(s) from rank {} to rank {} of group {} were never received",
                                      queue.size(), std::get<2>(route), std::get<3>(route), std::get<0>(route)));
    }
    traffic_.shared = shared_;
    traffic_.read_across = read_across_;
    for (const std::set<int>& writers : read_from_) traffic_.most_read = std::max(traffic_.most_read, writers.size());
    traffic_.steps = *std::max_element(steps_.begin(), steps_.end());
    return traffic_;
  }

 private:
  void deliver(const Route& route, int world_rank, std::span<std::byte> data) {
    auto& queue = queues_[route];
    const Message message = std::move(queue.front());
    queue.pop_front();
    if (message.data.size() != data.size())
      core::fail_system(fmt::format("rank {} expects {} bytes from rank {} of its group and gets {}", world_rank,
                                    data.size(), std::get<2>(route), message.data.size()));
    std::copy(message.data.begin(), message.data.end(), data.begin());
    auto& step = steps_[static_cast<std::size_t>(world_rank)];
    step = std::max(step, message.step);
  }

  /// Waits for `condition`; reports a deadlock if no remaining rank can continue.
  template <class Condition>
  void await(std::unique_lock<std::mutex>& lock, int world_rank, const std::string& what, Condition condition) {
    auto& waiting = waiting_[static_cast<std::size_t>(world_rank)];
    waiting = {what, condition};
    while (!condition()) {
      if (failure_) core::fail_system("another rank failed");
      if (is_deadlock()) core::fail_system("deadlock: " + describe_waiting());
      if (wake_[static_cast<std::size_t>(world_rank)].wait_for(lock, patience_) == std::cv_status::timeout &&
          !condition())
        core::fail_system(fmt::format("rank {} waited too long for {}", world_rank, what));
    }
    waiting = {};
  }

  void wake_all() {
    for (std::condition_variable& one : wake_) one.notify_one();
  }

  bool is_deadlock() const {
    int n_stuck = 0;
    for (const auto& [what, condition] : waiting_)
      if (condition && !condition()) ++n_stuck;
    return n_stuck + n_gone_ == static_cast<int>(waiting_.size());
  }

  std::string describe_waiting() const {
    std::string text;
    for (std::size_t rank = 0; rank < waiting_.size(); ++rank)
      if (waiting_[rank].second) text += fmt::format("rank {} waits for {}; ", rank, waiting_[rank].first);
    return text;
  }

  std::mutex mutex_;
  std::vector<int> nodes_;
  std::vector<int> sockets_;
  std::chrono::duration<double> patience_;
  std::vector<std::condition_variable> wake_;  ///< one per rank, so that a message wakes its receiver only
  std::vector<Group> groups_;
  std::map<Route, std::deque<Message>> queues_;
  std::map<std::pair<int, int>, Meeting> meetings_;
  std::vector<std::uint64_t> steps_;  ///< by rank: the longest chain that has reached it
  std::vector<std::pair<std::string, std::function<bool()>>> waiting_;
  int n_gone_ = 0;
  Traffic traffic_;
  std::atomic<std::uint64_t> shared_{0};
  std::atomic<std::uint64_t> read_across_{0};
  std::vector<std::set<int>> read_from_;  ///< by reader
  std::exception_ptr failure_;
};

}  // namespace lockstep::runtime::threads
