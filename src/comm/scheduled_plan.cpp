// Runs a schedule, blocking or not.
#include <cstring>
#include <utility>

#include "comm/loops.hpp"
#include "comm/schedule.hpp"
#include "core/error.hpp"
#include "runtime/device.hpp"

namespace lockstep::comm {
namespace {

class ScheduledPlan final : public Plan {
 public:
  ScheduledPlan(Transport& transport, const Call& call, Schedule schedule)
      : transport_{transport},
        call_{call},
        n_input_{call.input(transport.rank(), transport.n_ranks()).count},
        n_output_{call.output(transport.rank(), transport.n_ranks()).count},
        schedule_{std::move(schedule)},
        channel_{transport.open_channel(schedule_.n_slots())},
        scratch_{core::Bytes{schedule_.scratch_elements() * call.element_size()}},
        combine_{loops().find_combine(call.dtype, call.op)},
        divide_{loops().find_divide(call.dtype)} {}

  void bind(std::span<const std::byte> input, std::span<std::byte> output) override {
    core::require(input.size() == n_input_ * call_.element_size(), "the input has the call's size");
    core::require(output.size() == n_output_ * call_.element_size(), "the output has the call's size");
    steps_.clear();
    for (const Step& step : schedule_.steps()) steps_.push_back(resolve(step, input, output));
    sent_ = {};
    for (const Bound& step : steps_)
      if (step.action == Action::send) sent_ += {1, step.size};
  }

  void run() override {
    transport_.count(sent_);
    for (const Bound& step : steps_) {
      if (step.action == Action::send)
        channel_->send_now(step.slot, step.peer, {step.first, step.size});
      else
        execute(step);
    }
  }

  void begin() override {
    transport_.count(sent_);
    next_ = 0;
    static_cast<void>(test());
  }

  bool test() override {
    for (; next_ < steps_.size(); ++next_) {
      const Bound& step = steps_[next_];
      if (step.action != Action::wait)
        execute(step);
      else if (!channel_->test(step.slot))
        return false;
    }
    return true;
  }

  void wait() override {
    for (; next_ < steps_.size(); ++next_) execute(steps_[next_]);
  }

 private:
  /// A step with its regions as addresses. `size` is bytes for messages and copies, elements for arithmetic.
  struct Bound {
    Action action;
    int slot;
    int peer;
    std::size_t size;
    std::byte* target;
    const std::byte* first;
    const std::byte* second;
  };

  Bound resolve(const Step& step, std::span<const std::byte> input, std::span<std::byte> output) const {
    const auto address = [&](const Region& region) {
      const std::size_t offset = region.slice.offset * call_.element_size();
      const std::size_t room = region.operand == Operand::input    ? n_input_
                               : region.operand == Operand::output ? n_output_
                                                                   : schedule_.scratch_elements();
      core::require(region.slice.count <= room && region.slice.offset <= room - region.slice.count,
                    "a region lies inside its buffer");
      switch (region.operand) {
        case Operand::input: return input.data() + offset;
        case Operand::output: return static_cast<const std::byte*>(output.data()) + offset;
        case Operand::scratch: break;
      }
      return static_cast<const std::byte*>(scratch_.bytes().data()) + offset;
    };
    const bool arithmetic = step.action == Action::combine || step.action == Action::divide;
    const std::size_t count = step.action == Action::send ? step.first.slice.count : step.target.slice.count;
    core::require(step.target.slice.empty() || step.target.operand != Operand::input, "the input is never written");
    return {.action = step.action,
            .slot = step.slot,
            .peer = step.peer,
            .size = arithmetic ? count : count * call_.element_size(),
            .target = const_cast<std::byte*>(address(step.target)),
            .first = address(step.first),
            .second = address(step.second)};
  }

  void execute(const Bound& step) {
    switch (step.action) {
      case Action::send: channel_->send(step.slot, step.peer, {step.first, step.size}); break;
      case Action::recv: channel_->recv(step.slot, step.peer, {step.target, step.size}); break;
      case Action::wait: channel_->wait(step.slot); break;
      case Action::combine: combine_(step.target, step.first, step.second, step.size); break;
      case Action::copy:
        if (step.target != step.first) std::memcpy(step.target, step.first, step.size);
        break;
      case Action::divide: divide_(step.target, step.first, step.size, schedule_.divisor()); break;
    }
  }

  Transport& transport_;
  Call call_;
  std::size_t n_input_;
  std::size_t n_output_;
  Schedule schedule_;
  std::unique_ptr<Channel> channel_;
  runtime::Buffer scratch_;
  Combine combine_;
  Divide divide_;
  std::vector<Bound> steps_;
  Sent sent_{};  ///< by a run
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Plan> make_scheduled_plan(Transport& transport, const Call& call, Schedule schedule) {
  return std::make_unique<ScheduledPlan>(transport, call, std::move(schedule));
}

}  // namespace lockstep::comm
