#include "support/recorder.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/fnv.hpp"
#include "support/recorder_state.hpp"

namespace lockstep::test {

using runtime::kernel::Operation;

namespace {

std::uint64_t digest_of(std::span<const std::byte> bytes) {
  return core::fnv1a({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

class Recorder::Moment final : public runtime::Mark {
 public:
  /// `time`: when the stream reaches it, by the host's clock; for marks that report it.
  Moment(State& state, int stream, std::shared_ptr<const core::Seconds> time = {})
      : state_{state}, of_{state.record_of(stream)}, time_{std::move(time)} {
    if (of_ == nullptr) {
      *clock_ = state.clocks[static_cast<std::size_t>(stream)];
      return;
    }
    *clock_ = of_->clocks[stream];
    of_->actions.emplace_back([&state, stream, again = again_](const auto& streams) {
      *again = state.clocks[static_cast<std::size_t>(streams.at(stream))];
    });
  }
  void wait() const override {
    const std::lock_guard lock{state_.in_use};
    state_.forbid("waits");
    if (of_ == nullptr) state_.wait_for(*clock_);
  }
  // A caller that asks will ask until it is done.
  [[nodiscard]] bool is_done() const override {
    const std::lock_guard lock{state_.in_use};
    state_.forbid("waits");
    if (of_ == nullptr) state_.get_done(*clock_);
    return true;
  }
  // Makes `stream` wait for it.
  void hold(int stream) const {
    const std::shared_ptr<Record> record = state_.record_of(stream);
    if (record != nullptr && record != of_) {
      state_.complaints.push_back(fmt::format("stream {} waits for what is not recorded with it", stream));
    } else if (of_ == nullptr) {
      advance_to(state_.clocks[static_cast<std::size_t>(stream)], *clock_);
    } else {
      if (record == nullptr) state_.recording[stream] = of_;
      advance_to(of_->clocks[stream], *clock_);
      of_->actions.emplace_back([&state = state_, stream, again = again_](const auto& streams) {
        advance_to(state.clocks[static_cast<std::size_t>(streams.at(stream))], *again);
      });
    }
  }
  [[nodiscard]] core::Seconds since(const runtime::Mark& earlier) const override {
    return {time_->value - static_cast<const Moment&>(earlier).time_->value};
  }

 private:
  State& state_;
  std::shared_ptr<Record> of_;                                // null: not in a record
  std::shared_ptr<Clock> clock_ = std::make_shared<Clock>();  // in the record, if there is one
  std::shared_ptr<Clock> again_ = std::make_shared<Clock>();  // when it is replayed
  std::shared_ptr<const core::Seconds> time_;
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
    return std::make_unique<Moment>(state_, stream_);
  }
  std::unique_ptr<runtime::Mark> mark_time() override {
    const std::lock_guard lock{state_.in_use};
    if (state_.record_of(stream_) != nullptr) state_.complaints.emplace_back("what is recorded has no time");
    const auto time = std::make_shared<core::Seconds>();
    state_.add(stream_, "time", "", {}, {}, [time] { *time = runtime::host_clock(); });
    return std::make_unique<Moment>(state_, stream_, time);  // it is over when the time is known
  }
  void wait_for(const runtime::Mark& mark) override {
    const std::lock_guard lock{state_.in_use};
    static_cast<const Moment&>(mark).hold(stream_);
  }
  void wait() override {
    const std::lock_guard lock{state_.in_use};
    state_.forbid("waits");
    state_.wait_for(all());
  }
  // A caller that asks will ask until it is done.
  bool is_done() override {
    const std::lock_guard lock{state_.in_use};
    state_.forbid("waits");
    state_.get_done(all());
    return true;
  }
  void begin_recording() override {
    const std::lock_guard lock{state_.in_use};
    if (state_.record_of(stream_) != nullptr) state_.complaints.emplace_back("a stream is recorded already");
    state_.recording[stream_] = std::make_shared<Record>(Record{.origin = stream_});
  }
  std::unique_ptr<runtime::Graph> end_recording() override {
    const std::lock_guard lock{state_.in_use};
    const std::shared_ptr<Record> record = state_.recording.at(stream_);
    const Clock& end = record->clocks[stream_];
    for (const auto& [stream, clock] : record->clocks) {
      const auto i = static_cast<std::size_t>(stream);
      if (i < clock.size() && (i < end.size() ? end[i] : 0) < clock[i])
        state_.complaints.push_back(fmt::format("stream {} is recorded, but not waited for in the end", stream));
    }
    std::erase_if(state_.recording, [&](const auto& one) { return one.second == record; });
    return std::make_unique<Recorded>(record);
  }
  void replay(const runtime::Graph& graph) override {
    const std::lock_guard lock{state_.in_use};
    ++state_.n_replays;
    const auto& recorded = static_cast<const Recorded&>(graph);
    std::map<int, int>& streams = recorded.streams();
    for (const auto& [stream, clock] : recorded.record().clocks)
      if (!streams.contains(stream)) streams[stream] = state_.open_stream();
    streams[recorded.record().origin] = stream_;
    for (const auto& action : recorded.record().actions) action(streams);
  }

 private:
  // Also includes what it waits for, even without later operations.
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
    state_.forbid("allocates");
    ++state_.n_changes;
    state_.allocations.emplace(data, Allocation{.number = state_.n_allocated++, .memory = memory, .n_bytes = n_bytes});
    if (memory == Memory::device) state_.n_bytes += n_bytes;
    state_.peak_bytes = std::max(state_.peak_bytes, state_.n_bytes);
    return data;
  }
  // Like a GPU's, it returns when no enqueued operation remains.
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
  std::unique_ptr<runtime::Queue> open_queue(runtime::Priority /*priority*/) override {
    const std::lock_guard lock{state_.in_use};
    return std::make_unique<Line>(state_, state_.open_stream());
  }
  core::Bytes available() override {
    const std::lock_guard lock{state_.in_use};
    return {state_.memory - state_.n_bytes};
  }

 private:
  // Untouched pages take no memory, however many there are; otherwise as sanitizers watch it.
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
std::size_t Recorder::n_bytes() const {
  const std::lock_guard lock{state_->in_use};
  return state_->n_bytes;
}
std::size_t Recorder::peak_bytes() const {
  const std::lock_guard lock{state_->in_use};
  return state_->peak_bytes;
}
int Recorder::n_allocations() const {
  const std::lock_guard lock{state_->in_use};
  return state_->n_changes;
}
int Recorder::n_host_waits() const {
  const std::lock_guard lock{state_->in_use};
  return state_->n_host_waits;
}
int Recorder::n_replays() const {
  const std::lock_guard lock{state_->in_use};
  return state_->n_replays;
}
std::vector<std::string> Recorder::take_lines() {
  const std::lock_guard lock{state_->in_use};
  return std::exchange(state_->lines, {});
}

}  // namespace lockstep::test
