// Enqueues NCCL calls in our streams.
// Invariant: a call names all memory it touches, because a recorder judges the order of operations by that.
// Used by nccl_cuda.cpp and nccl_exchange.cpp; includes NCCL's header, as only files for NCCL do.
#pragma once

#include <nccl.h>

#include <cstring>
#include <span>
#include <string_view>

#include "runtime/kernel/launch.hpp"

namespace lockstep::comm::nccl {

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

}  // namespace lockstep::comm::nccl
