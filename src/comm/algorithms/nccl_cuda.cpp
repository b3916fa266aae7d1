// NVIDIA's library of collectives. Every row has its own communicator: NCCL reads from the environment what to use
// while it makes one. The ranks find one another through the transport, so no port is opened for that.
#include <fmt/format.h>
#include <nccl.h>

#include <bit>
#include <cstdlib>
#include <memory>
#include <utility>

#include "comm/algorithms/algorithms.hpp"
#include "comm/algorithms/nccl_call.hpp"
#include "comm/algorithms/nccl_errors.hpp"
#include "comm/algorithms/nccl_exchange.hpp"
#include "comm/algorithms/nccl_link.hpp"
#include "comm/algorithms/nccl_log.hpp"
#include "comm/algorithms/nccl_registration.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

std::optional<ncclDataType_t> type_of(core::DType dtype) {
  switch (dtype) {
    case core::DType::int8: return ncclInt8;
    case core::DType::uint8: return ncclUint8;
    case core::DType::int32: return ncclInt32;
    case core::DType::uint32: return ncclUint32;
    case core::DType::int64: return ncclInt64;
    case core::DType::uint64: return ncclUint64;
    case core::DType::float16: return ncclFloat16;
    case core::DType::bfloat16: return ncclBfloat16;
    case core::DType::float32: return ncclFloat32;
    case core::DType::float64: return ncclFloat64;
    case core::DType::int16:
    case core::DType::uint16: break;
  }
  return std::nullopt;
}

ncclRedOp_t op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ncclSum;
    case ReduceOp::prod: return ncclProd;
    case ReduceOp::min: return ncclMin;
    case ReduceOp::max: return ncclMax;
    case ReduceOp::avg: break;
  }
  return ncclAvg;
}

bool is_float(core::DType dtype) {
  return core::visit(dtype, []<class T>(std::type_identity<T>) { return !std::is_integral_v<T>; });
}

/// Sets a variable of the environment while it lives; without a value the variable is unchanged.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_{name} {
    if (const char* const before = std::getenv(name)) before_ = before;
    is_set_ = !value.empty();
    if (is_set_) setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (is_set_) static_cast<void>(before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_));
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  bool is_set_ = false;
  std::optional<std::string> before_;
};

/// The part after the colon of NAME:ALGORITHM[/PROTOCOL].
struct Variant {
  explicit Variant(std::string_view name) {
    const std::size_t colon = name.find(':');
    if (colon == std::string_view::npos) return;
    const std::string_view words = name.substr(colon + 1);
    const std::size_t slash = words.find('/');
    algorithm = words.substr(0, slash);
    if (slash != std::string_view::npos) protocol = words.substr(slash + 1);
  }
  std::string algorithm;
  std::string protocol;
};

/// Sets, while it lives, the environment in which such a row makes its communicators.
class AsNamed {
 public:
  explicit AsNamed(std::string_view name) : variant_{name} {}

 private:
  Variant variant_;
  Variable algorithm_{"NCCL_ALGO", variant_.algorithm}, protocol_{"NCCL_PROTO", variant_.protocol};
};

// Collective: combines the bytes of all ranks.
void combine(Transport& transport, ReduceOp op, std::span<std::byte> bytes) {
  const auto plan = make_plan(transport, {.dtype = core::DType::uint8, .op = op, .n_elements = bytes.size()});
  plan->bind(bytes, bytes);
  plan->run();
}

// All ranks get rank 0's identifier by the maximum, because the others pass zeros. Ranks also agree on whether it could
// be made, because otherwise no rank may wait for the others.
ncclUniqueId agree_on_id(Transport& transport) {
  struct {
    ncclUniqueId id{};
    ncclResult_t result = ncclSuccess;
  } first;
  if (transport.rank() == 0) first.result = ncclGetUniqueId(&first.id);
  combine(transport, ReduceOp::max, std::as_writable_bytes(std::span{&first, 1}));
  nccl::check_connected(first.result, "making an identifier");
  return first.id;
}

// Collective: true if `is_so` on all ranks.
bool is_so_for_all(Transport& transport, bool is_so) {
  std::byte answer{is_so};
  combine(transport, ReduceOp::min, {&answer, 1});
  return answer != std::byte{0};
}

class NcclRegistered final : public Registered {
 public:
  NcclRegistered(nccl::Link& comm, runtime::DeviceSpan<std::byte> memory, Registration how)
      : comm_{comm}, how_{how}, handle_{nccl::register_memory(comm.get(), memory, how)} {}
  // A communicator that has ended has no registered memory.
  ~NcclRegistered() override {
    if (comm_ && is_known()) nccl::deregister(comm_.get(), handle_, how_);
    if (!comm_) comm_.end();
  }
  NcclRegistered(const NcclRegistered&) = delete;
  NcclRegistered& operator=(const NcclRegistered&) = delete;

  [[nodiscard]] bool is_known() const noexcept { return handle_ != nullptr; }

 private:
  nccl::Link& comm_;
  Registration how_;
  void* handle_;
};

class NcclPlan final : public DevicePlan {
 public:
  NcclPlan(nccl::Link& comm, runtime::Stream& own, const Call& call, int rank, int n_ranks)
      : comm_{comm}, own_{own}, call_{call}, rank_{rank}, n_ranks_{n_ranks} {}

  void bind(runtime::DeviceSpan<const std::byte> input, runtime::DeviceSpan<std::byte> output) override {
    core::require(input.size() == call_.input(rank_, n_ranks_).count * call_.element_size() &&
                      output.size() == call_.output(rank_, n_ranks_).count * call_.element_size(),
                  "buffers have the call's sizes");
    input_ = input;
    output_ = output;
  }

  // In the communicator's stream, concurrent with the caller's next operations.
  void start(runtime::Stream& stream) override {
    own_.wait_for(stream.mark());
    run(own_);
    done_ = own_.mark();
  }
  void finish(runtime::Stream& stream) override { stream.wait_for(done_); }

  void run(runtime::Stream& stream) override {
    if (call_.n_elements == 0) return;
    nccl::enqueue(stream, name(call_.collective), {input_.data(), input_.size()}, {output_.data(), output_.size()},
                  *this);
  }

  void call(cudaStream_t stream) const {
    ncclResult_t result = ncclSuccess;
    switch (call_.collective) {
      case Collective::all_reduce:
        result = ncclAllReduce(input_.data(), output_.data(), call_.n_elements, type_, op_, comm_.get(), stream);
        break;
      case Collective::reduce_scatter:
        result = is_even_
                     ? ncclReduceScatter(input_.data(), output_.data(), part(0).count, type_, op_, comm_.get(), stream)
                     : scatter_unevenly(stream);
        break;
      case Collective::all_gather:
        result = is_even_ ? ncclAllGather(input_.data(), output_.data(), part(0).count, type_, comm_.get(), stream)
                          : gather_unevenly(stream);
        break;
    }
    comm_.check(result, name(call_.collective));
  }

 private:
  [[nodiscard]] core::Slice part(int rank) const { return call_.part(rank, n_ranks_); }

  // NCCL's own collectives support equal parts only, so one collective per part is started, all at once.
  template <class OfPart>
  ncclResult_t for_each_part(OfPart of_part) const {
    ncclResult_t result = ncclGroupStart();
    for (int q = 0; q < n_ranks_ && result == ncclSuccess; ++q)
      if (!part(q).empty()) result = of_part(q, part(q));
    const ncclResult_t end = ncclGroupEnd();
    return result == ncclSuccess ? end : result;
  }
  ncclResult_t scatter_unevenly(cudaStream_t stream) const {
    return for_each_part([&](int q, const core::Slice& part_of_q) {
      return ncclReduce(input_.data() + part_of_q.offset * call_.element_size(), q == rank_ ? output_.data() : nullptr,
                        part_of_q.count, type_, op_, q, comm_.get(), stream);
    });
  }
  ncclResult_t gather_unevenly(cudaStream_t stream) const {
    return for_each_part([&](int q, const core::Slice& part_of_q) {
      std::byte* const place = output_.data() + part_of_q.offset * call_.element_size();
      return ncclBroadcast(q == rank_ ? input_.data() : place, place, part_of_q.count, type_, q, comm_.get(), stream);
    });
  }

  nccl::Link& comm_;
  runtime::Stream& own_;
  Call call_;
  int rank_;
  int n_ranks_;
  ncclDataType_t type_ = *type_of(call_.dtype);
  ncclRedOp_t op_ = op_of(call_.op);
  bool is_even_ = call_.has_equal_parts(n_ranks_);
  runtime::DeviceSpan<const std::byte> input_;
  runtime::DeviceSpan<std::byte> output_;
  runtime::Event done_;
};

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
    return std::make_unique<NcclPlan>(comm_, *stream_, call, transport_.rank(), transport_.n_ranks());
  }
  [[nodiscard]] std::unique_ptr<DeviceGroup> split(Transport& part) override {
    if (!comm_) connect();
    const AsNamed as_named{row_.name};
    ncclComm_t raw = nullptr;
    const int first = transport_.rank() - part.rank();
    comm_.check(ncclCommSplit(comm_.get(), first, transport_.rank(), &raw, nullptr), "connecting some of the GPUs");
    return std::unique_ptr<NcclGroup>{new NcclGroup{*this, part, raw}};
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
    auto registered = std::make_unique<NcclRegistered>(comm_, memory, how);
    if (!is_so_for_all(transport_, registered->is_known())) return nullptr;
    return registered;
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

  void connect() {
    require_nccl();
    const AsNamed as_named{row_.name};
    nccl::Log& log = nccl::Log::only();
    const Variable level{"NCCL_DEBUG", log.level()}, subsystems{"NCCL_DEBUG_SUBSYS", log.subsystems()},
        file{"NCCL_DEBUG_FILE", log.path()};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t raw = nullptr;
    const ncclUniqueId id = agree_on_id(transport_);
    nccl::check_connected(ncclCommInitRankConfig(&raw, transport_.n_ranks(), id, transport_.rank(), &config),
                          "connecting the GPUs");
    comm_.connect(raw);
    connection_ = nccl::read_connection(log.take());
  }

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
