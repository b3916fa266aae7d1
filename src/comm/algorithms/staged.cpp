// Staged: copies to pinned host memory, runs an algorithm of the host there, and copies back to the device.
#include <algorithm>

#include "comm/algorithms/algorithms.hpp"

namespace lockstep::comm {
namespace {

class StagedPlan final : public DevicePlan {
 public:
  StagedPlan(Transport& transport, const Algorithm* by, const Call& call)
      : element_size_{call.element_size()},
        input_on_host_{call.input(transport.rank(), transport.n_ranks())},
        output_on_host_{call.output(transport.rank(), transport.n_ranks())},
        whole_{call.bytes(), runtime::Memory::pinned} {
    plan_ = by != nullptr ? comm::make_plan(*by, transport, call) : comm::make_plan(transport, call);
    plan_->bind(on_host_input(), on_host_output());
  }

  void bind(runtime::DeviceSpan<const std::byte> input, runtime::DeviceSpan<std::byte> output) override {
    core::require(input.size() == on_host_input().size() && output.size() == on_host_output().size(),
                  "buffers have the call's sizes");
    input_ = input;
    output_ = output;
  }

  // In a separate stream, which the host can wait for without waiting for later operations.
  void start(runtime::Stream& stream) override {
    copies_.wait_for(stream.mark());
    copies_.copy(on_host_input(), input_);
  }

  void finish(runtime::Stream& stream) override {
    copies_.wait();
    plan_->run();
    copies_.copy(output_, on_host_output());
    stream.wait_for(copies_.mark());
  }

 private:
  // Both lie in the whole vector, as in any call in place.
  [[nodiscard]] std::span<std::byte> on_host_input() const { return on_host(input_on_host_); }
  [[nodiscard]] std::span<std::byte> on_host_output() const { return on_host(output_on_host_); }
  [[nodiscard]] std::span<std::byte> on_host(const core::Slice& slice) const {
    return whole_.bytes().subspan(slice.offset * element_size_, slice.count * element_size_);
  }

  std::size_t element_size_;
  core::Slice input_on_host_;
  core::Slice output_on_host_;
  runtime::Buffer whole_;
  std::unique_ptr<Plan> plan_;
  runtime::DeviceSpan<const std::byte> input_;
  runtime::DeviceSpan<std::byte> output_;
  runtime::Stream copies_;
};

class StagedGroup final : public DeviceGroup {
 public:
  StagedGroup(std::string_view name, Transport& transport, const Algorithm* by)
      : name_{name}, transport_{transport}, by_{by} {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] bool only_enqueues() const noexcept override { return false; }
  [[nodiscard]] std::unique_ptr<DevicePlan> make_plan(const Call& call) override {
    return std::make_unique<StagedPlan>(transport_, by_, call);
  }
  [[nodiscard]] std::unique_ptr<DeviceGroup> split(Transport& part) override {
    return std::make_unique<StagedGroup>(name_, part, by_);
  }

 private:
  std::string_view name_;
  Transport& transport_;
  const Algorithm* by_;
};

}  // namespace

std::unique_ptr<DeviceGroup> staged::make(const Algorithm& row, Transport& transport) {
  return std::make_unique<StagedGroup>(row.name, transport, nullptr);
}

std::unique_ptr<DeviceGroup> make_staged(Transport& transport, const Algorithm* by) {
  const auto row = std::ranges::find(algorithms(), &staged::make, &Algorithm::group);
  return std::make_unique<StagedGroup>(row->name, transport, by);
}

}  // namespace lockstep::comm
