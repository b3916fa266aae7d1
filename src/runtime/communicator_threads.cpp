#include "runtime/communicator_threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/timer.hpp"
#include "runtime/thread_hub.hpp"

namespace lockstep::runtime {
namespace {

using namespace threads;

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
  // Ranks that wait elsewhere for this rank are detected as a deadlock.
  bool await_all(std::optional<core::Seconds>, const core::Clock&) const override {
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
      core::require(hub_.node_of(member) == hub_.node_of(world_rank_), "ranks that share memory are on one node");
    hub_.note_sharing(bytes);
    const auto make = [](Meeting& meeting) {
      meeting.parts = std::make_shared<std::vector<Buffer>>();
      for (const Brought& its : meeting.brought) meeting.parts->emplace_back(core::Bytes{its.size});
    };
    auto parts = meet({.size = bytes}, make, [](Meeting& meeting) { return meeting.parts; });
    return std::make_unique<ThreadSegment>(hub_, members_, world_rank_, std::move(parts));
  }

  // Threads usually outnumber the cores, so a waiting thread yields at once.
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
