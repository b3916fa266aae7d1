#include "comm/nccl/plan.hpp"

#include <cstring>
#include <span>
#include <string_view>

#include "core/error.hpp"
#include "core/slice.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::comm::nccl {
namespace {

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

/// Enqueues `caller.call(cudaStream_t)`, which reads and writes only those spans; the caller must outlive it.
template <class Caller>
void enqueue(runtime::Stream& stream, std::string_view name, const runtime::kernel::Region& read,
             const runtime::kernel::Region& write, const Caller& caller) {
  static constexpr auto call = [](const std::byte* body, cudaStream_t on) {
    const Caller* of = nullptr;
    std::memcpy(&of, body, sizeof of);
    of->call(on);
  };
  const Caller* const self = &caller;
  stream.enqueue({.name = name,
                  .reads = {&read, 1},
                  .writes = {&write, 1},
                  .grid = {},
                  .body = std::as_bytes(std::span{&self, 1}),
                  // For a library on the host, which tests use in NCCL's place.
                  .on_host = [](const std::byte* body, const runtime::kernel::Grid&,
                                runtime::kernel::ThreadOrder) { call(body, nullptr); },
                  .on_cuda =
                      [](const std::byte* body, const runtime::kernel::Grid&, void* on) {
                        call(body, static_cast<cudaStream_t>(on));
                        return static_cast<int>(cudaSuccess);
                      }});
}

class NcclPlan final : public DevicePlan {
 public:
  NcclPlan(Link& comm, runtime::Stream& own, const Call& call, int rank, int n_ranks)
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
    enqueue(stream, name(call_.collective), {input_.data(), input_.size()}, {output_.data(), output_.size()}, *this);
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

  Link& comm_;
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

/// All sends and receives of a rank are one group, whose calls do not wait for each other.
class NcclExchange final : public DevicePlan {
 public:
  NcclExchange(Link& comm, int rank, int n_ranks, core::Bytes bytes, int n_neighbours)
      : comm_{comm}, rank_{rank}, n_ranks_{n_ranks}, n_bytes_{bytes.value}, n_neighbours_{n_neighbours} {}

  void bind(runtime::DeviceSpan<const std::byte> sent, runtime::DeviceSpan<std::byte> received) override {
    core::require(sent.size() == n_bytes_ && received.size() == n_bytes_, "buffers have the exchange's size");
    sent_ = sent;
    received_ = received;
  }
  void start(runtime::Stream& stream) override {
    enqueue(stream, "exchange", {sent_.data(), n_bytes_}, {received_.data(), n_bytes_}, *this);
  }
  void finish(runtime::Stream& /*stream*/) override {}

  void call(cudaStream_t stream) const {
    ncclResult_t result = ncclGroupStart();
    for (int i = 0; i < n_neighbours_ && result == ncclSuccess; ++i) result = exchange_part(i, stream);
    const ncclResult_t end = ncclGroupEnd();
    comm_.check(result == ncclSuccess ? end : result, "an exchange with neighbours");
  }

 private:
  ncclResult_t exchange_part(int i, cudaStream_t stream) const {
    const core::Slice part = core::partition(n_bytes_, static_cast<std::size_t>(n_neighbours_),
                                             static_cast<std::size_t>(i), exchange_alignment);
    const int distance = i + 1;
    const ncclResult_t sent =
        ncclSend(sent_.data() + part.offset, part.count, ncclUint8, (rank_ + distance) % n_ranks_, comm_.get(), stream);
    if (sent != ncclSuccess) return sent;
    return ncclRecv(received_.data() + part.offset, part.count, ncclUint8, (rank_ - distance + n_ranks_) % n_ranks_,
                    comm_.get(), stream);
  }

  Link& comm_;
  int rank_;
  int n_ranks_;
  std::size_t n_bytes_;
  int n_neighbours_;
  runtime::DeviceSpan<const std::byte> sent_;
  runtime::DeviceSpan<std::byte> received_;
};

}  // namespace

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

std::unique_ptr<DevicePlan> make_collective(Link& comm, runtime::Stream& own, const Call& call, int rank, int n_ranks) {
  return std::make_unique<NcclPlan>(comm, own, call, rank, n_ranks);
}

std::unique_ptr<DevicePlan> make_exchange(Link& comm, int rank, int n_ranks, core::Bytes bytes, int n_neighbours) {
  core::require(n_neighbours >= 1 && n_neighbours < n_ranks, "a rank has at least one neighbour and is not its own");
  return std::make_unique<NcclExchange>(comm, rank, n_ranks, bytes, n_neighbours);
}

}  // namespace lockstep::comm::nccl
