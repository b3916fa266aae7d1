// mpi:device: the library's own collectives on addresses of device memory.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "comm/algorithms/algorithms.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

class MpiDevicePlan final : public DevicePlan {
 public:
  MpiDevicePlan(Transport& transport, const Call& call)
      : n_input_{call.input(transport.rank(), transport.n_ranks()).count * call.element_size()},
        n_output_{call.output(transport.rank(), transport.n_ranks()).count * call.element_size()},
        is_reduce_scatter_{call.collective == Collective::reduce_scatter},
        plan_{mpi_native::make(transport, call)} {}

  // Only the library dereferences these addresses. MPI forbids an output that is a part of the input.
  void bind(runtime::DeviceSpan<const std::byte> input, runtime::DeviceSpan<std::byte> output) override {
    core::require(input.size() == n_input_ && output.size() == n_output_, "buffers have the call's sizes");
    const bool is_part =
        is_reduce_scatter_ && output.data() >= input.data() && output.data() < input.data() + input.size();
    if (is_part && !scratch_) scratch_.emplace(core::Bytes{n_output_}, runtime::Memory::device);
    goes_to_ = is_part ? output : runtime::DeviceSpan<std::byte>{};
    const auto result = is_part ? scratch_->on_device<std::byte>() : output;
    plan_->bind({input.data(), input.size()}, {result.data(), result.size()});
  }
  void start(runtime::Stream& stream) override { is_ready_ = stream.is_done() ? runtime::Event{} : stream.mark(); }
  // The library knows no streams: it starts when the input is complete, and returns when the result is.
  void finish(runtime::Stream& stream) override {
    is_ready_.wait();
    plan_->run();
    if (goes_to_.size() > 0) stream.copy(goes_to_, scratch_->on_device<std::byte>());
  }

 private:
  std::size_t n_input_, n_output_;
  bool is_reduce_scatter_;
  std::optional<runtime::Buffer> scratch_{};  ///< the result of a reduce_scatter in place
  runtime::DeviceSpan<std::byte> goes_to_{};  ///< where it goes from there; else empty
  std::unique_ptr<Plan> plan_;
  runtime::Event is_ready_{};
};

class MpiGroup final : public DeviceGroup {
 public:
  MpiGroup(const Algorithm& row, Transport& transport) : row_{row}, transport_{transport} {}

  [[nodiscard]] std::string_view name() const noexcept override { return row_.name; }
  [[nodiscard]] bool only_enqueues() const noexcept override { return false; }
  [[nodiscard]] std::unique_ptr<DevicePlan> make_plan(const Call& call) override {
    if (const auto why_not = obstacle(row_, call, transport_, Devices::shared))
      core::fail_usage(
          {.what = fmt::format("algorithm {} {}", row_.name, *why_not), .where = "", .expected = "", .fix = ""});
    if (!is_proven_) prove();
    return std::make_unique<MpiDevicePlan>(transport_, call);
  }
  [[nodiscard]] std::unique_ptr<DeviceGroup> split(Transport& part) override {
    return std::make_unique<MpiGroup>(row_, part);
  }

 private:
  // Tests the library's claim before anything relies on it: sums one number of each rank in device memory.
  void prove() {
    const std::size_t n_ranks = static_cast<std::size_t>(transport_.n_ranks());
    const runtime::Buffer here{core::Bytes{sizeof(std::uint32_t)}, runtime::Memory::pinned};
    const runtime::Buffer there{core::Bytes{sizeof(std::uint32_t)}, runtime::Memory::device};
    runtime::Stream stream;
    here.as<std::uint32_t>()[0] = static_cast<std::uint32_t>(transport_.rank()) + 1;
    stream.copy(there.on_device<std::byte>(), here.bytes());
    MpiDevicePlan plan{transport_, {.dtype = core::DType::uint32, .n_elements = 1}};
    plan.bind(there.on_device<std::byte>(), there.on_device<std::byte>());
    plan.run(stream);
    here.as<std::uint32_t>()[0] = 0;
    stream.copy(here.bytes(), there.on_device<std::byte>());
    stream.wait();
    std::array is_wrong{std::byte{here.as<std::uint32_t>()[0] != n_ranks * (n_ranks + 1) / 2}};
    const auto any =
        comm::make_plan(transport_, {.dtype = core::DType::uint8, .op = ReduceOp::max, .n_elements = is_wrong.size()});
    any->bind(is_wrong, is_wrong);
    any->run();
    if (is_wrong[0] != std::byte{0})
      core::fail_system(
          "the MPI library reports that it is GPU-aware, but its sum of one number per rank in GPU memory is wrong; "
          "use --algorithm staged,nccl instead");
    is_proven_ = true;
  }

  const Algorithm& row_;
  Transport& transport_;
  bool is_proven_ = false;
};

}  // namespace

std::unique_ptr<DeviceGroup> mpi_native::make_for_devices(const Algorithm& row, Transport& transport) {
  return std::make_unique<MpiGroup>(row, transport);
}

// The host does what mpi_native.cpp does itself: 16-bit floats and averages. For vectors longer than one MPI call
// supports it uses nonblocking calls, which libraries do not support on GPU memory.
std::optional<std::string> mpi_native::why_not_for_devices(const Call& call, const Transport& /*transport*/) {
  if (!takes_gpus()) return "needs a GPU-aware MPI library, and this one reports that it is not";
  if (call.n_elements > std::size_t{1} << 30) return "supports at most 2^30 elements";
  if (call.collective == Collective::all_gather) return std::nullopt;  // nothing is combined
  if (call.op == ReduceOp::avg) return "does not support avg, because MPI does not";
  if (call.dtype == core::DType::float16 || call.dtype == core::DType::bfloat16)
    return fmt::format("does not support {}, because MPI 3.1 does not", core::name(call.dtype));
  return std::nullopt;
}

}  // namespace lockstep::comm
