#include "reduce_all/runner.hpp"

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

class DeviceRunner final : public Runner {
 public:
  DeviceRunner(comm::DeviceGroup& group, const comm::Call& call) : group_{group}, plan_{group.make_plan(call)} {}

  void bind(const CallBuffers& buffers) override { plan_->bind(buffers.input, buffers.output); }
  void run(int n) override {
    for (int i = 0; i < n; ++i) plan_->run(stream_);
    comm::wait(stream_, group_);
  }
  std::optional<core::Seconds> time_on_device() override {
    const runtime::Event begin = stream_.mark_time();
    plan_->run(stream_);
    const runtime::Event end = stream_.mark_time();
    comm::wait(stream_, group_);
    return end.since(begin);
  }

 private:
  comm::DeviceGroup& group_;
  std::unique_ptr<comm::DevicePlan> plan_;
  runtime::Stream stream_;
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

std::unique_ptr<Runner> Groups::make_runner(const comm::Algorithm& algorithm, const comm::Call& call) {
  if (is_on_host()) return reduce_all::make_runner(comm::make_plan(algorithm, transport_, call));
  std::unique_ptr<comm::DeviceGroup>& group = groups_[&algorithm];
  if (!group) group = algorithm.group(algorithm, transport_);
  return std::make_unique<DeviceRunner>(*group, call);
}

}  // namespace lockstep::reduce_all
