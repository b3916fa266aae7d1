// The state of a recorder: who touched which memory when, what remains to be done, and what is being recorded.
// Invariant: used with the lock held.
// Used by recorder.cpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/recorder.hpp"

namespace lockstep::test {

using runtime::Memory;
using runtime::kernel::Region;

inline constexpr const char* nowhere = "nowhere";

// How many operations of each stream are certainly over; missing streams: none.
using Clock = std::vector<std::size_t>;

inline void advance_to(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

struct Access {
  std::size_t begin;
  std::size_t end;
  bool is_write;
  int stream;
  std::size_t index;  // of its operation in the stream, from 1
  std::string name;
};

struct Allocation {
  int number;
  Memory memory;
  std::size_t n_bytes;
  std::vector<Access> accesses{};
};

struct Pending {
  std::function<void()> run;
  Clock after;  // what must have run earlier
};

// What streams receive while one of them is recorded.
struct Record {
  int origin;
  std::thread::id by = std::this_thread::get_id();
  std::vector<std::function<void(const std::map<int, int>&)>>
      actions{};                  // with streams that stand for the recorded ones
  std::map<int, Clock> clocks{};  // of the recorded ones, in operations of the record
};

class Recorded final : public runtime::Graph {
 public:
  explicit Recorded(std::shared_ptr<const Record> record) : record_{std::move(record)} {}
  [[nodiscard]] const Record& record() const noexcept { return *record_; }
  std::map<int, int>& streams() const noexcept { return streams_; }

 private:
  std::shared_ptr<const Record> record_;
  mutable std::map<int, int> streams_{};  // except the one that replays
};

struct Recorder::State {
  std::mutex in_use{};  // ranks that are threads share a device
  runtime::kernel::ThreadOrder order;
  Bodies bodies;
  std::map<const std::byte*, Allocation> allocations{};
  int n_allocated = 0;
  std::size_t memory = std::size_t{1} << 40;
  int n_changes = 0;
  int n_host_waits = 0;
  int n_replays = 0;
  std::size_t n_bytes = 0;
  std::size_t peak_bytes = 0;
  std::vector<std::string> complaints{};
  std::vector<std::string> lines{};

  Clock host{};                                        // what the host has waited for
  std::vector<Clock> clocks{};                         // of streams: what is over before the next operation begins
  std::vector<std::vector<Pending>> pending{};         // by stream, from the first operation on
  std::vector<std::size_t> n_run{};                    // of these
  std::map<int, std::shared_ptr<Record>> recording{};  // streams

  // The allocation that holds a region, or null.
  Allocation* find(const Region& region, std::size_t& offset) {
    const auto* begin = static_cast<const std::byte*>(region.begin);
    auto next = allocations.upper_bound(begin);
    if (next == allocations.begin()) return nullptr;
    --next;
    offset = static_cast<std::size_t>(begin - next->first);
    return offset + region.n_bytes <= next->second.n_bytes ? &next->second : nullptr;
  }

  // Judges one region of operation `index` of a stream, and returns its place.
  std::string touch(int stream, std::size_t index, const std::string& name, const Region& region, bool is_write) {
    if (region.n_bytes == 0) return "nothing";
    std::size_t offset = 0;
    Allocation* const of = find(region, offset);
    const char* const verb = is_write ? "writes" : "reads";
    if (of == nullptr) {
      complaints.push_back(fmt::format("{} {} {} bytes that are not allocated", name, verb, region.n_bytes));
      return nowhere;
    }
    const std::string place = fmt::format("{}[{}:{}]", of->number, offset, offset + region.n_bytes);
    const Clock& seen = clocks[static_cast<std::size_t>(stream)];
    std::erase_if(of->accesses, [this](const Access& earlier) {  // what all streams have seen
      const auto by = static_cast<std::size_t>(earlier.stream);
      return by < host.size() && earlier.index <= host[by];
    });
    for (const Access& earlier : of->accesses) {
      if (earlier.stream == stream || (!earlier.is_write && !is_write)) continue;
      if (earlier.end <= offset || earlier.begin >= offset + region.n_bytes) continue;
      const auto other = static_cast<std::size_t>(earlier.stream);
      if (other < seen.size() && seen[other] >= earlier.index) continue;
      complaints.push_back(fmt::format("{} in stream {} {} {}, which {} in stream {} may still be {}", name, stream,
                                       verb, place, earlier.name, earlier.stream,
                                       earlier.is_write ? "writing" : "reading"));
      break;
    }
    of->accesses.push_back({offset, offset + region.n_bytes, is_write, stream, index, name});
    return place;
  }

  int open_stream() {
    clocks.emplace_back();
    pending.emplace_back();
    n_run.push_back(0);
    return static_cast<int>(pending.size()) - 1;
  }

  [[nodiscard]] std::shared_ptr<Record> record_of(int stream) const {
    const auto of = recording.find(stream);
    return of == recording.end() ? nullptr : of->second;
  }
  // Forbids what the host must not do while it records.
  void forbid(const char* what) {
    for (const auto& [stream, record] : recording)
      if (record->by == std::this_thread::get_id()) {
        complaints.push_back(fmt::format("the host {} while stream {} is recorded", what, record->origin));
        return;
      }
  }

  void add(int stream, const std::string& name, const std::string& details, std::span<const Region> reads,
           std::span<const Region> writes, std::function<void()> run) {
    if (const std::shared_ptr<Record> record = record_of(stream)) {
      Clock& clock = record->clocks[stream];
      if (clock.size() <= static_cast<std::size_t>(stream)) clock.resize(static_cast<std::size_t>(stream) + 1);
      ++clock[static_cast<std::size_t>(stream)];
      record->actions.emplace_back([=, this, from = std::vector<Region>(reads.begin(), reads.end()),
                                    to = std::vector<Region>(writes.begin(), writes.end())](const auto& streams) {
        add(streams.at(stream), name, details, from, to, run);
      });
      return;
    }
    auto& of_stream = pending[static_cast<std::size_t>(stream)];
    Clock& clock = clocks[static_cast<std::size_t>(stream)];
    advance_to(clock, host);
    const std::size_t index = of_stream.size() + 1;
    std::string line = fmt::format("{} {}{}", stream, name, details);
    bool is_allocated = true;
    const auto judge = [&](const Region& region, bool is_write) {
      const std::string place = touch(stream, index, name, region, is_write);
      is_allocated = is_allocated && place != nowhere;
      line += (is_write ? " >" : " <") + place;
    };
    for (const Region& region : reads) judge(region, false);
    for (const Region& region : writes) judge(region, true);
    if (!is_allocated || bodies == Bodies::skip) run = [] {};
    lines.push_back(std::move(line));
    of_stream.push_back({std::move(run), clock});
    if (clock.size() <= static_cast<std::size_t>(stream)) clock.resize(static_cast<std::size_t>(stream) + 1);
    clock[static_cast<std::size_t>(stream)] = index;
  }

  // Runs the first `n` operations of a stream, and what they wait for.
  void run(std::size_t stream, std::size_t n) {
    while (n_run[stream] < n) {
      const std::size_t index = n_run[stream];
      const Clock after = pending[stream][index].after;
      for (std::size_t other = 0; other < after.size(); ++other)
        if (other != stream) run(other, after[other]);
      try {
        pending[stream][index].run();
      } catch (...) {  // nothing runs on a device that has failed, and owners of the rest may be gone
        for (std::size_t other = 0; other < pending.size(); ++other) n_run[other] = pending[other].size();
        throw;
      }
      ++n_run[stream];
    }
  }

  // Finishes everything that is over at a moment.
  void get_done(const Clock& moment) {
    for (std::size_t stream = 0; stream < moment.size(); ++stream) run(stream, moment[stream]);
    advance_to(host, moment);
  }
  // The host waits until it is over, unless it already knows that.
  void wait_for(const Clock& moment) {
    for (std::size_t stream = 0; stream < moment.size(); ++stream)
      if (moment[stream] > (stream < host.size() ? host[stream] : 0)) {
        ++n_host_waits;
        break;
      }
    get_done(moment);
  }
};

}  // namespace lockstep::test
