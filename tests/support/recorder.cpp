#include "support/recorder.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <span>
#include <utility>

#include "core/fnv.hpp"

namespace lockstep::test {

using runtime::Memory;
using runtime::kernel::Operation;
using runtime::kernel::Region;

namespace {

constexpr const char* nowhere = "nowhere";

// How many operations of each stream surely are over; missing ones: none.
using Clock = std::vector<std::size_t>;

void advance_to(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

std::uint64_t digest_of(std::span<const std::byte> bytes) {
  return core::fnv1a({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
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
  Clock after;  // what must have run before
};

}  // namespace

struct Recorder::State {
  std::mutex in_use{};  // ranks that are threads share a device
  runtime::kernel::ThreadOrder order;
  Bodies bodies;
  std::map<const std::byte*, Allocation> allocations{};
  int n_allocated = 0;
  std::size_t memory = std::size_t{1} << 40;
  int n_changes = 0;
  int n_host_waits = 0;
  std::size_t n_bytes = 0;
  std::size_t peak_bytes = 0;
  std::vector<std::string> complaints{};
  std::vector<std::string> lines{};

  Clock host{};                                 // what the host has waited for
  std::vector<Clock> clocks{};                  // of streams: what is over before the next operation begins
  std::vector<std::vector<Pending>> pending{};  // of streams, from the first operation on
  std::vector<std::size_t> n_run{};             // of those

  // The allocation that holds a region, or null.
  Allocation* find(const Region& region, std::size_t& offset) {
    const auto* begin = static_cast<const std::byte*>(region.begin);
    auto next = allocations.upper_bound(begin);
    if (next == allocations.begin()) return nullptr;
    --next;
    offset = static_cast<std::size_t>(begin - next->first);
    return offset + region.n_bytes <= next->second.n_bytes ? &next->second : nullptr;
  }

  // Judges one region of operation `index` of a stream, and gives its place.
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
    std::erase_if(of->accesses, [this](const Access& earlier) {  // what everybody has seen
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

  void add(int stream, const std::string& name, const std::string& details, std::span<const Region> reads,
           std::span<const Region> writes, std::function<void()> run) {
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
      } catch (...) {  // nothing runs on a device that has failed, and owners of what is left may be gone
        for (std::size_t other = 0; other < pending.size(); ++other) n_run[other] = pending[other].size();
        throw;
      }
      ++n_run[stream];
    }
  }

  // All that is over at a moment.
  void get_done(const Clock& moment) {
    for (std::size_t stream = 0; stream < moment.size(); ++stream) run(stream, moment[stream]);
    advance_to(host, moment);
  }
  // By a host that stands still until it is, unless it knows that it is.
  void wait_for(const Clock& moment) {
    for (std::size_t stream = 0; stream < moment.size(); ++stream)
      if (moment[stream] > (stream < host.size() ? host[stream] : 0)) {
        ++n_host_waits;
        break;
      }
    get_done(moment);
  }
};

class Recorder::Moment final : public runtime::Mark {
 public:
  Moment(State& state, Clock clock) : state_{state}, clock_{std::move(clock)} {}
  void wait() const override {
    const std::lock_guard lock{state_.in_use};
    state_.wait_for(clock_);
  }
  // Who asks will ask until it is.
  [[nodiscard]] bool is_done() const override {
    const std::lock_guard lock{state_.in_use};
    state_.get_done(clock_);
    return true;
  }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  /// When the stream comes to it, by the host's clock.
  [[nodiscard]] std::shared_ptr<core::Seconds> time() const { return time_; }
  [[nodiscard]] core::Seconds since(const runtime::Mark& earlier) const override {
    return {time_->value - static_cast<const Moment&>(earlier).time_->value};
  }

 private:
  State& state_;
  Clock clock_;
  std::shared_ptr<core::Seconds> time_ = std::make_shared<core::Seconds>();
};

class Recorder::Line final : public runtime::Queue {
 public:
  Line(State& state, int stream) : state_{state}, stream_{stream} {}

  void enqueue(const Operation& operation) override {
    std::vector<std::byte> body(operation.body.begin(), operation.body.end());
    const auto grid = operation.grid;
    const std::lock_guard lock{state_.in_use};
    const auto details =
        fmt::format(" {}x{}+{} {:016x}", grid.n_blocks, grid.n_threads, grid.scratch_bytes, digest_of(operation.body));
    state_.add(stream_, std::string{operation.name}, details, operation.reads, operation.writes,
               [&state = state_, name = std::string{operation.name}, body = std::move(body), grid, order = state_.order,
                run = operation.on_host] {
                 if (run != nullptr)
                   run(body.data(), grid, order);
                 else
                   state.complaints.push_back(name + " cannot run on the host");
               });
  }
  void copy(void* to, const void* from, std::size_t n_bytes) override {
    const std::lock_guard lock{state_.in_use};
    const Region read{from, n_bytes};
    const Region write{to, n_bytes};
    state_.add(stream_, "copy", "", {&read, 1}, {&write, 1}, [=] { std::memcpy(to, from, n_bytes); });
  }
  void fill(void* to, std::byte value, std::size_t n_bytes) override {
    const std::lock_guard lock{state_.in_use};
    const Region write{to, n_bytes};
    state_.add(stream_, "fill", fmt::format(" {}", std::to_integer<int>(value)), {}, {&write, 1},
               [=] { std::memset(to, std::to_integer<int>(value), n_bytes); });
  }
  std::unique_ptr<runtime::Mark> mark() override {
    const std::lock_guard lock{state_.in_use};
    return std::make_unique<Moment>(state_, state_.clocks[static_cast<std::size_t>(stream_)]);
  }
  std::unique_ptr<runtime::Mark> mark_time() override {
    const std::lock_guard lock{state_.in_use};
    auto moment = std::make_unique<Moment>(state_, state_.clocks[static_cast<std::size_t>(stream_)]);
    state_.add(stream_, "time", "", {}, {}, [time = moment->time()] { *time = runtime::host_clock(); });
    return moment;
  }
  void wait_for(const runtime::Mark& mark) override {
    const std::lock_guard lock{state_.in_use};
    advance_to(state_.clocks[static_cast<std::size_t>(stream_)], static_cast<const Moment&>(mark).clock());
  }
  void wait() override {
    const std::lock_guard lock{state_.in_use};
    state_.wait_for(all());
  }
  // Who asks will ask until it is.
  bool is_done() override {
    const std::lock_guard lock{state_.in_use};
    state_.get_done(all());
    return true;
  }

 private:
  // Also what it waits for, with nothing behind that.
  [[nodiscard]] const Clock& all() const { return state_.clocks[static_cast<std::size_t>(stream_)]; }

  State& state_;
  int stream_;
};

class Recorder::Device final : public runtime::Accelerator {
 public:
  explicit Device(State& state) : state_{state} {}

  std::byte* allocate(std::size_t n_bytes, Memory memory) override {
    if (memory == Memory::device && n_bytes > available().value) return nullptr;
    std::byte* const data = take(n_bytes);
    if (data == nullptr) return nullptr;
    const std::lock_guard lock{state_.in_use};
    ++state_.n_changes;
    state_.allocations.emplace(data, Allocation{.number = state_.n_allocated++, .memory = memory, .n_bytes = n_bytes});
    if (memory == Memory::device) state_.n_bytes += n_bytes;
    state_.peak_bytes = std::max(state_.peak_bytes, state_.n_bytes);
    return data;
  }
  // As a GPU's, it returns when nothing that was enqueued is left to do.
  void release(std::byte* data, Memory memory) noexcept override {
    const std::lock_guard lock{state_.in_use};
    state_.host.resize(state_.pending.size());
    for (std::size_t stream = 0; stream < state_.pending.size(); ++stream) {
      state_.host[stream] = state_.pending[stream].size();
      state_.run(stream, state_.host[stream]);
    }
    ++state_.n_changes;
    const auto of = state_.allocations.find(data);
    if (memory == Memory::device) state_.n_bytes -= of->second.n_bytes;
    const std::size_t n_bytes = of->second.n_bytes;
    state_.allocations.erase(of);
    if (state_.bodies == Bodies::skip)
      munmap(data, n_bytes);
    else
      std::free(data);
  }
  std::unique_ptr<runtime::Queue> open_queue() override {
    const std::lock_guard lock{state_.in_use};
    state_.clocks.emplace_back();
    state_.pending.emplace_back();
    state_.n_run.push_back(0);
    return std::make_unique<Line>(state_, static_cast<int>(state_.pending.size()) - 1);
  }
  core::Bytes available() override {
    const std::lock_guard lock{state_.in_use};
    return {state_.memory - state_.n_bytes};
  }

 private:
  // Pages that nobody touches take no memory, however many there are; else as the sanitizers watch it.
  [[nodiscard]] std::byte* take(std::size_t n_bytes) const {
    if (state_.bodies == Bodies::run) return static_cast<std::byte*>(std::calloc(n_bytes, 1));
    void* const pages =
        mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
  }

  State& state_;
};

Recorder::Recorder(runtime::kernel::ThreadOrder order, Bodies bodies) : state_{std::make_unique<State>()} {
  state_->order = order;
  state_->bodies = bodies;
}
Recorder::~Recorder() = default;
void Recorder::limit_memory(core::Bytes all) { state_->memory = all.value; }

std::unique_ptr<runtime::Accelerator> Recorder::device() { return std::make_unique<Device>(*state_); }
const std::vector<std::string>& Recorder::complaints() const noexcept { return state_->complaints; }
std::size_t Recorder::n_bytes() const noexcept { return state_->n_bytes; }
std::size_t Recorder::peak_bytes() const noexcept { return state_->peak_bytes; }
int Recorder::n_allocations() const noexcept { return state_->n_changes; }
int Recorder::n_host_waits() const noexcept { return state_->n_host_waits; }
std::vector<std::string> Recorder::take_lines() { return std::exchange(state_->lines, {}); }

}  // namespace lockstep::test
