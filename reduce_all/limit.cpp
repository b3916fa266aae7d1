#include "reduce_all/limit.hpp"

#include <cstring>

#include "comm/kernels.hpp"
#include "core/error.hpp"

namespace lockstep::reduce_all {
namespace {

class CopyPlan final : public comm::Plan {
 public:
  explicit CopyPlan(CopyKind kind) : kind_{kind} {}

  void bind(std::span<const std::byte> input, std::span<std::byte> output) override {
    core::require(input.size() == output.size(), "a copy has equal sides");
    input_ = input;
    output_ = output;
  }
  void run() override {
    if (kind_ == CopyKind::streaming)
      comm::kernels().copy_streaming(output_.data(), input_.data(), input_.size());
    else
      std::memcpy(output_.data(), input_.data(), input_.size());
  }
  void start() override { run(); }
  bool test() override { return true; }
  void wait() override {}

 private:
  CopyKind kind_;
  std::span<const std::byte> input_;
  std::span<std::byte> output_;
};

}  // namespace

std::unique_ptr<comm::Plan> make_copy_plan(CopyKind kind) { return std::make_unique<CopyPlan>(kind); }

double limit_GBps(comm::Collective collective, core::Bytes bytes, core::Seconds copy_time, int n_ranks) {
  const double share = collective == comm::Collective::all_reduce ? 1.0 : (1.0 + 1.0 / n_ranks) / 2;
  return core::gigabytes_per_second(bytes, {copy_time.value * share});
}

}  // namespace lockstep::reduce_all
