#include "reduce_all/runner.hpp"

#include <map>
#include <utility>

namespace lockstep::reduce_all {
namespace {

class PlanRunner final : public Runner {
 public:
  PlanRunner(std::unique_ptr<comm::Plan> plan, bool is_prepared) : plan_{std::move(plan)}, is_prepared_{is_prepared} {}

  void bind(const CallBuffers& buffers) override {
    plan_->bind(runtime::on_host(buffers.input), runtime::on_host(buffers.output));
  }
  void prepare() override {
    if (is_prepared_) plan_->start({});
  }
  void run(int n) override {
    if (is_prepared_) return plan_->wait();
    for (int i = 0; i < n; ++i) plan_->run();
  }

 private:
  std::unique_ptr<comm::Plan> plan_;
  bool is_prepared_;
};

class DeviceRunner : public Runner {
 public:
  DeviceRunner(comm::DeviceGroup& group, std::unique_ptr<comm::DevicePlan> plan, bool uses_graph)
      : group_{group}, plan_{std::move(plan)}, uses_graph_{uses_graph && group.only_enqueues()} {}

  void bind(const CallBuffers& buffers) override {
    if (buffers.input.data() != input_ || buffers.output.data() != output_) recordings_.clear();
    input_ = buffers.input.data();
    output_ = buffers.output.data();
    plan_->bind(buffers.input, buffers.output);
  }
  // Runs once directly, because libraries do extra work in their first call.
  void make_ready(int n) override {
    if (!uses_graph_ || recordings_.contains(n)) return;
    plan_->run(stream_);
    comm::wait(stream_, group_);
    recordings_[n] = stream_.record([&] {
      for (int i = 0; i < n; ++i) plan_->run(stream_);
    });
    enqueue(n);  // what a graph takes the first time
    comm::wait(stream_, group_);
  }
  void run(int n) override {
    make_ready(n);
    enqueue(n);
    comm::wait(stream_, group_);
  }
  // Measured after other calls, during which the host enqueues this one; otherwise it would measure the host's time.
  std::optional<core::Seconds> time_on_device() override {
    make_ready(1);
    constexpr int n_before = 4;
    if (group_.only_enqueues())
      for (int i = 0; i < n_before; ++i) enqueue(1);
    const runtime::Event begin = stream_.mark_time();
    enqueue(1);
    const runtime::Event end = stream_.mark_time();
    comm::wait(stream_, group_);
    return end.since(begin);
  }

 private:
  void enqueue(int n) {
    if (uses_graph_) return stream_.replay(recordings_.at(n));
    for (int i = 0; i < n; ++i) plan_->run(stream_);
  }

  comm::DeviceGroup& group_;
  std::unique_ptr<comm::DevicePlan> plan_;
  bool uses_graph_;
  const std::byte* input_ = nullptr;
  const std::byte* output_ = nullptr;
  std::map<int, runtime::Recording> recordings_{};  ///< by the number of calls with these buffers
  runtime::Stream stream_;
};

class ExchangeRunner final : public DeviceRunner {
 public:
  ExchangeRunner(comm::DeviceGroup& group, const CallBuffers& buffers, int n_neighbours)
      : DeviceRunner{group, group.make_exchange({buffers.input.size()}, n_neighbours), false} {
    DeviceRunner::bind(buffers);
  }
  void bind(const CallBuffers& /*buffers*/) override {}
};

class DeviceCopy final : public Runner {
 public:
  void bind(const CallBuffers& buffers) override { buffers_ = buffers; }
  void run(int n) override {
    for (int i = 0; i < n; ++i) stream_.copy(buffers_.output, buffers_.input);
    while (!stream_.is_done()) {  // as comm::wait() has it
    }
  }

 private:
  CallBuffers buffers_;
  runtime::Stream stream_;
};

}  // namespace

std::unique_ptr<Runner> make_runner(std::unique_ptr<comm::Plan> plan, bool is_prepared) {
  return std::make_unique<PlanRunner>(std::move(plan), is_prepared);
}

std::unique_ptr<Runner> make_device_copy() { return std::make_unique<DeviceCopy>(); }

std::unique_ptr<Runner> make_exchange(comm::DeviceGroup& group, const CallBuffers& buffers, int n_neighbours) {
  return std::make_unique<ExchangeRunner>(group, buffers, n_neighbours);
}

comm::DeviceGroup& Groups::of(const comm::Algorithm& algorithm) {
  std::unique_ptr<comm::DeviceGroup>& group = groups_[&algorithm];
  if (!group) group = algorithm.group(algorithm, transport_);
  return *group;
}

std::unique_ptr<Runner> Groups::make_runner(const comm::Algorithm& algorithm, const comm::Call& call,
                                            BufferPool& pool) {
  if (is_on_host()) return reduce_all::make_runner(comm::make_plan(algorithm, transport_, call));
  comm::DeviceGroup& group = of(algorithm);
  pool.register_with(group);
  return std::make_unique<DeviceRunner>(group, group.make_plan(call), uses_graph_);
}

}  // namespace lockstep::reduce_all
