// NVIDIA's library of collectives as a group of ranks, and the constraints of its rows.
#include <fmt/format.h>

#include <bit>
#include <cstdlib>
#include <memory>

#include "comm/algorithms/algorithms.hpp"
#include "comm/nccl/communicator.hpp"
#include "comm/nccl/plan.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

bool is_float(core::DType dtype) {
  return core::visit(dtype, []<class T>(std::type_identity<T>) { return !std::is_integral_v<T>; });
}

class NcclGroup final : public DeviceGroup {
 public:
  NcclGroup(const Algorithm& row, Transport& transport) : row_{row}, transport_{transport} {}
  [[nodiscard]] std::string_view name() const noexcept override { return row_.name; }
  [[nodiscard]] bool only_enqueues() const noexcept override { return true; }
  [[nodiscard]] std::unique_ptr<DevicePlan> make_plan(const Call& call) override {
    // The requester has already checked the row by switches.
    if (const auto why_not = obstacle(row_, call, transport_, Devices::switched))
      core::fail_usage(
          {.what = fmt::format("algorithm {} {}", row_.name, *why_not), .where = "", .expected = "", .fix = ""});
    if (!comm_) connect();
    return nccl::make_collective(comm_, *stream_, call, transport_.rank(), transport_.n_ranks());
  }
  [[nodiscard]] std::unique_ptr<DeviceGroup> split(Transport& part) override {
    if (!comm_) connect();
    return std::unique_ptr<NcclGroup>{new NcclGroup{*this, part, nccl::split(comm_, row_.name, transport_, part)}};
  }
  [[nodiscard]] std::unique_ptr<DevicePlan> make_exchange(core::Bytes bytes, int n_neighbours) override {
    if (!comm_) connect();
    return nccl::make_exchange(comm_, transport_.rank(), transport_.n_ranks(), bytes, n_neighbours);
  }
  [[nodiscard]] Connection connection() override {
    if (!comm_) connect();
    return connection_;
  }
  [[nodiscard]] bool registers() const noexcept override { return true; }
  [[nodiscard]] std::unique_ptr<Registered> register_memory(runtime::DeviceSpan<std::byte> memory,
                                                            Registration how) override {
    if (!comm_) connect();
    return nccl::register_memory(comm_, transport_, memory, how);
  }
  void check() override { comm_.check_noticed(); }

 private:
  NcclGroup(NcclGroup& whole, Transport& part, ncclComm_t raw)
      : row_{whole.row_},
        transport_{part},
        comm_{whole.comm_.family()},
        connection_{whole.connection_},
        stream_{whole.stream_} {
    comm_.connect(raw);
  }

  void connect() { connection_ = nccl::connect(comm_, row_.name, transport_); }

  const Algorithm& row_;
  Transport& transport_;
  nccl::Link comm_;
  Connection connection_{};
  /// The stream of started calls, which other ranks wait for; split groups share it.
  std::shared_ptr<runtime::Stream> stream_ = std::make_shared<runtime::Stream>(runtime::Priority::first);
};

}  // namespace

std::unique_ptr<DeviceGroup> nccl::make(const Algorithm& row, Transport& transport) {
  return std::make_unique<NcclGroup>(row, transport);
}

// NCCL averages floats as sums of products with 1/P, which equal the quotient only for powers of two. For integers its
// rounding is not documented.
std::optional<std::string> nccl::why_not(const Call& call, const Transport& transport) {
  if (!type_of(call.dtype)) return fmt::format("does not support {}", core::name(call.dtype));
  const bool is_power = std::has_single_bit(static_cast<unsigned>(transport.n_ranks()));
  if (call.collective != Collective::all_gather && call.op == ReduceOp::avg && !(is_float(call.dtype) && is_power))
    return "averages only floats, on a power of two of ranks: otherwise NCCL rounds more than once";
  return std::nullopt;
}

// NCCL's own rule (ncclNvlsInit), without which it uses another algorithm or gives up. How many GPUs of several hosts
// its switches connect is not known here.
std::optional<std::string> nccl::why_not_by_switches(const Call& call, const Transport& transport) {
  if (call.op != ReduceOp::sum) return "supports only sum";
  const bool gathers = call.collective == Collective::all_gather;
  if (!gathers && call.element_size() == 1) return fmt::format("does not sum {}", core::name(call.dtype));
  if (call.collective != Collective::all_reduce && !call.has_equal_parts(transport.n_ranks()))
    return "needs parts of equal length";
  int version = 0;
  const bool is_known = ncclGetVersion(&version) == ncclSuccess;
  const int fewest = is_known && version >= NCCL_VERSION(2, 28, 7) ? 2 : 3;
  if (transport.n_real_nodes() == 1 && transport.n_ranks() < fewest)
    return fmt::format("needs at least {} GPUs with NCCL {}", fewest, nccl_version());
  return why_not(call, transport);
}

// Between nodes the network must reduce, too; NCCL uses that only if the user enables it.
std::optional<std::string> nccl::why_not_by_switches_of_a_node(const Call& call, const Transport& transport) {
  const char* const sharp = std::getenv("NCCL_COLLNET_ENABLE");
  if (transport.n_real_nodes() > 1 && (sharp == nullptr || std::string_view{sharp} != "1"))
    return "needs all ranks on one node, or a network that reduces (NCCL_COLLNET_ENABLE=1)";
  return why_not_by_switches(call, transport);
}

std::optional<std::string> nccl::why_not_by_trees_of_switches(const Call& call, const Transport& transport) {
  if (transport.n_real_nodes() == 1) return "needs ranks on several nodes, and NCCL sees all of these on one";
  return why_not_by_switches(call, transport);
}

}  // namespace lockstep::comm
