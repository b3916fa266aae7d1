#include "runtime/communicator_threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/timer.hpp"
#include "runtime/device.hpp"

namespace lockstep::runtime {
namespace {

struct Message {
  std::vector<std::byte> data;
  std::uint64_t step = 0;
};

/// Which queue a message belongs to: group, channel, sender, receiver (ranks of the group).
using Route = std::tuple<int, int, int, int>;

/// What a member brings to a meeting.
struct Brought {
  std::int64_t color = 0;
  std::int64_t key = 0;
  std::size_t size = 0;
  std::vector<std::byte> data{};
};

/// Where the members of a group come together to make something; the last to arrive makes it for all.
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
constexpr int control_channel = -1;

/// Everything the threads share. One lock: this transport is for correctness, not for speed.
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

  /// True if a message was there.
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

  /// Members of `group` meet for the `sequence`-th time; `make` runs once, by the last to come.
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

  /// By world ranks.
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

  /// After the last rank: rethrows, or checks that nothing was left lying about.
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

  /// Waits for `condition`; when no rank that is left can move any more, that is a deadlock.
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
  std::vector<std::condition_variable> wake_;  ///< one per rank: a message wakes its receiver only
  std::vector<Group> groups_;
  std::map<Route, std::deque<Message>> queues_;
  std::map<std::pair<int, int>, Meeting> meetings_;
  std::vector<std::uint64_t> steps_;  ///< of each rank: the longest chain that has reached it
  std::vector<std::pair<std::string, std::function<bool()>>> waiting_;
  int n_gone_ = 0;
  Traffic traffic_;
  std::atomic<std::uint64_t> shared_{0};
  std::atomic<std::uint64_t> read_across_{0};
  std::vector<std::set<int>> read_from_;  ///< by reader
  std::exception_ptr failure_;
};

class ThreadChannel final : public Channel {
 public:
  ThreadChannel(Hub& hub, int group, int channel, int rank, int world_rank, int n_slots)
      : hub_{hub}, group_{group}, channel_{channel}, rank_{rank}, world_rank_{world_rank}, pending_(n_slots) {}

  void recv(int slot, int from, std::span<std::byte> data) override {
    pending_[static_cast<std::size_t>(slot)] = {true, from, data};
  }
  void send(int slot, int to, std::span<const std::byte> data) override {
    pending_[static_cast<std::size_t>(slot)] = {};
    hub_.post({group_, channel_, rank_, to}, world_rank_, data);
  }
  void send_now(int slot, int to, std::span<const std::byte> data) override { send(slot, to, data); }

  void wait(int slot) override {
    Pending& pending = pending_[static_cast<std::size_t>(slot)];
    if (pending.is_receive) hub_.take_waiting(route(pending), world_rank_, pending.data);
    pending = {};
  }
  bool test(int slot) override {
    Pending& pending = pending_[static_cast<std::size_t>(slot)];
    hub_.throw_if_failed();
    if (pending.is_receive && !hub_.take(route(pending), world_rank_, pending.data)) return false;
    pending = {};
    return true;
  }

 private:
  struct Pending {
    bool is_receive = false;
    int from = 0;
    std::span<std::byte> data;
  };
  Route route(const Pending& pending) const { return {group_, channel_, pending.from, rank_}; }

  Hub& hub_;
  int group_;
  int channel_;
  int rank_;
  int world_rank_;
  std::vector<Pending> pending_;
};

class ThreadSegment final : public SharedSegment {
 public:
  ThreadSegment(Hub& hub, std::vector<int> members, int world_rank, std::shared_ptr<std::vector<Buffer>> parts)
      : hub_{hub}, members_{std::move(members)}, world_rank_{world_rank}, parts_{std::move(parts)} {}
  std::span<std::byte> part(int rank) const override { return (*parts_)[static_cast<std::size_t>(rank)].bytes(); }
  void note_reading(int rank, std::size_t n_bytes) const override {
    hub_.note_reading(world_rank_, members_[static_cast<std::size_t>(rank)], n_bytes);
  }

 private:
  Hub& hub_;
  std::vector<int> members_;
  int world_rank_;
  std::shared_ptr<std::vector<Buffer>> parts_;
};

class ThreadCommunicator final : public Communicator {
 private:
  template <class Make, class Result>
  auto meet(Brought mine, Make make, Result result) const {
    return hub_.meet(group_, n_meetings_++, rank(), world_rank_, std::move(mine), make, result);
  }

 public:
  ThreadCommunicator(Hub& hub, int group, int world_rank)
      : ThreadCommunicator{hub, group, world_rank, hub.members_of(group)} {}

  std::unique_ptr<Communicator> duplicate() const override { return split(0, rank()); }

  std::unique_ptr<Communicator> split(int color, int key) const override {
    core::require(color >= 0, "the color of a split is not negative");
    const auto make = [&](Meeting& meeting) {
      meeting.groups.resize(meeting.brought.size());
      std::map<std::int64_t, std::vector<std::pair<std::int64_t, int>>> by_color;  // color -> (key, rank)
      for (int r = 0; r < n_ranks(); ++r) {
        const Brought& its = meeting.brought[static_cast<std::size_t>(r)];
        by_color[its.color].emplace_back(its.key, r);
      }
      for (auto& [its_color, ranks] : by_color) {
        std::sort(ranks.begin(), ranks.end());
        std::vector<int> members;
        for (const auto& [its_key, r] : ranks) members.push_back(members_[static_cast<std::size_t>(r)]);
        const int group = hub_.add_group(std::move(members));
        for (const auto& [its_key, r] : ranks) meeting.groups[static_cast<std::size_t>(r)] = group;
      }
    };
    const int group = meet({.color = color, .key = key}, make,
                           [&](Meeting& meeting) { return meeting.groups[static_cast<std::size_t>(rank())]; });
    return std::make_unique<ThreadCommunicator>(hub_, group, world_rank_);
  }

  std::unique_ptr<Communicator> split_shared() const override { return split(hub_.node_of(world_rank_), rank()); }

  void barrier() const override {
    meet(
        {}, [](Meeting&) {}, [](Meeting&) { return 0; });
  }
  // Who waits elsewhere for this rank is found as a deadlock.
  bool await_all(std::optional<core::Seconds>) const override {
    barrier();
    return true;
  }
  using Communicator::broadcast;
  void broadcast(std::span<std::byte> data, int root) const override {
    Brought mine;
    if (rank() == root) mine.data.assign(data.begin(), data.end());
    meet(
        std::move(mine), [](Meeting&) {},
        [&](Meeting& meeting) { return copy(meeting.brought[static_cast<std::size_t>(root)].data, data); });
  }

  std::unique_ptr<Channel> open_channel(int n_slots) override {
    return std::make_unique<ThreadChannel>(hub_, group_, n_channels_++, rank(), world_rank_, n_slots);
  }

  std::unique_ptr<SharedSegment> share(std::size_t bytes) override {
    for (const int member : members_)
      core::require(hub_.node_of(member) == hub_.node_of(world_rank_), "memory is shared by ranks of one node");
    hub_.note_sharing(bytes);
    const auto make = [](Meeting& meeting) {
      meeting.parts = std::make_shared<std::vector<Buffer>>();
      for (const Brought& its : meeting.brought) meeting.parts->emplace_back(core::Bytes{its.size});
    };
    auto parts = meet({.size = bytes}, make, [](Meeting& meeting) { return meeting.parts; });
    return std::make_unique<ThreadSegment>(hub_, members_, world_rank_, std::move(parts));
  }

  // Threads usually outnumber the cores, so waiting gives the processor away at once.
  int spin_limit(bool) const noexcept override { return 0; }
  void relax(std::uint64_t n_before, bool) override {
    if (n_before == 0) waiting_since_ = core::now();
    if (n_before % 1024 == 1023 && core::now().value - waiting_since_.value > hub_.patience().value)
      core::fail_system(fmt::format("rank {} waited too long for a flag", world_rank_));
    hub_.throw_if_failed();
    std::this_thread::yield();
  }

 private:
  ThreadCommunicator(Hub& hub, int group, int world_rank, std::vector<int> members)
      : Communicator{static_cast<int>(std::ranges::find(members, world_rank) - members.begin()),
                     static_cast<int>(members.size())},
        hub_{hub},
        group_{group},
        world_rank_{world_rank},
        members_{std::move(members)} {}

  static std::size_t copy(const std::vector<std::byte>& from, std::span<std::byte> to) {
    if (from.size() != to.size())
      core::fail_system(fmt::format("a collective has {} bytes on one rank and {} on another", from.size(), to.size()));
    std::ranges::copy(from, to.begin());
    return from.size();
  }

  void gather_short(std::span<const std::byte> block, std::span<std::byte> blocks, int root) const override {
    Brought mine;
    mine.data.assign(block.begin(), block.end());
    meet(
        std::move(mine), [](Meeting&) {},
        [&](Meeting& meeting) {
          for (std::size_t r = 0; rank() == root && r < meeting.brought.size(); ++r)
            copy(meeting.brought[r].data, blocks.subspan(r * block.size(), block.size()));
          return 0;
        });
  }
  void send(std::span<const std::byte> data, int to) const override {
    hub_.post({group_, control_channel, rank(), to}, world_rank_, data);
  }
  void receive(std::span<std::byte> data, int from) const override {
    hub_.take_waiting({group_, control_channel, from, rank()}, world_rank_, data);
  }

  Hub& hub_;
  int group_;
  int world_rank_;
  std::vector<int> members_;  ///< world ranks
  int n_channels_ = 0;
  mutable int n_meetings_ = 0;
  core::Seconds waiting_since_{};
};

}  // namespace

Traffic run_as_threads(const ThreadsLayout& layout, const std::function<void(Communicator&)>& body) {
  Hub hub{layout};
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < layout.nodes.size(); ++rank) {
    threads.emplace_back([&hub, &body, rank] {
      try {
        ThreadCommunicator world{hub, 0, static_cast<int>(rank)};
        body(world);
      } catch (...) {
        hub.fail(std::current_exception());
      }
      hub.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return hub.finish();
}

}  // namespace lockstep::runtime
