#include "comm/algorithms/nccl_exchange.hpp"

#include "comm/algorithms/nccl_call.hpp"
#include "core/error.hpp"
#include "core/slice.hpp"

namespace lockstep::comm {
namespace {

class NcclExchange final : public DevicePlan {
 public:
  NcclExchange(nccl::Link& comm, int rank, int n_ranks, core::Bytes bytes, int n_neighbours)
      : comm_{comm}, rank_{rank}, n_ranks_{n_ranks}, n_bytes_{bytes.value}, n_neighbours_{n_neighbours} {}

  void bind(runtime::DeviceSpan<const std::byte> sent, runtime::DeviceSpan<std::byte> received) override {
    core::require(sent.size() == n_bytes_ && received.size() == n_bytes_, "buffers have the exchange's size");
    sent_ = sent;
    received_ = received;
  }
  void start(runtime::Stream& stream) override {
    nccl::enqueue(stream, "exchange", {sent_.data(), n_bytes_}, {received_.data(), n_bytes_}, *this);
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

  nccl::Link& comm_;
  int rank_;
  int n_ranks_;
  std::size_t n_bytes_;
  int n_neighbours_;
  runtime::DeviceSpan<const std::byte> sent_;
  runtime::DeviceSpan<std::byte> received_;
};

}  // namespace

std::unique_ptr<DevicePlan> nccl::make_exchange(Link& comm, int rank, int n_ranks, core::Bytes bytes,
                                                int n_neighbours) {
  core::require(n_neighbours >= 1 && n_neighbours < n_ranks, "a rank has at least one neighbour and is not its own");
  return std::make_unique<NcclExchange>(comm, rank, n_ranks, bytes, n_neighbours);
}

}  // namespace lockstep::comm
