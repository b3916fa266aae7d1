// Memory from ncclMemAlloc, which other GPUs and switches can map. NCCL returns a null handle for what it cannot do:
// windows need GPUs that all reach one another, and environment variables disable each kind.
#include "comm/algorithms/nccl_registration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/algorithms/nccl_errors.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

// Windows exist since 2.27, but some of their results were wrong before 2.28.7.
constexpr int oldest_for(Registration how) {
  return how == Registration::symmetric ? NCCL_VERSION(2, 28, 7) : NCCL_VERSION(2, 19, 0);
}

}  // namespace

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
namespace {

// cudaFree waits by itself for kernels that use the memory.
void wait_for_kernels() noexcept { static_cast<void>(cudaDeviceSynchronize()); }

void free_memory(std::byte* data) noexcept {
  wait_for_kernels();
  static_cast<void>(ncclMemFree(data));
}

}  // namespace

// A library older than the one this program was built with may lack these functions.
runtime::Buffer allocate_to_register(core::Bytes size) {
  if (registration_obstacle(Registration::local)) return runtime::Buffer{size, runtime::Memory::device};
  void* data = nullptr;
  nccl::check(ncclMemAlloc(&data, size.value), nullptr,
              fmt::format("allocating {} to be registered", core::format_bytes(size)));
  auto buffer = runtime::Buffer::owning(static_cast<std::byte*>(data), size, free_memory);
  runtime::Stream stream;
  stream.fill(buffer.on_device<std::byte>(), std::byte{0});
  stream.wait();
  return buffer;
}
#else
runtime::Buffer allocate_to_register(core::Bytes size) { return runtime::Buffer{size, runtime::Memory::device}; }
#endif

std::optional<std::string> registration_obstacle(Registration registration) {
  if (registration == Registration::none) return std::nullopt;
  int in_use = 0;
  nccl::check(ncclGetVersion(&in_use), nullptr, "asking for its version");
  const int version = std::min(in_use, NCCL_VERSION_CODE);
  if (version >= oldest_for(registration)) return std::nullopt;
  return fmt::format("needs NCCL {} or newer, and this is {}", nccl::to_text(oldest_for(registration)),
                     nccl::to_text(version));
}

void* nccl::register_memory([[maybe_unused]] ncclComm_t comm, [[maybe_unused]] runtime::DeviceSpan<std::byte> memory,
                            Registration how) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (how == Registration::symmetric) {
    ncclWindow_t window = nullptr;
    check(ncclCommWindowRegister(comm, memory.data(), memory.size(), &window, NCCL_WIN_COLL_SYMMETRIC), comm,
          "making a window");
    // Without support for windows, 2.28 silently registers locally: its handle is then the local one.
    void* local = nullptr;
    check(ncclCommRegister(comm, memory.data(), memory.size(), &local), comm, "registering memory");
    if (local != nullptr) check(ncclCommDeregister(comm, local), comm, "registering memory");
    if (local == nullptr || local != window) return window;
    check(ncclCommWindowDeregister(comm, window), comm, "making a window");
    return nullptr;
  }
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  if (how == Registration::local) {
    void* handle = nullptr;
    check(ncclCommRegister(comm, memory.data(), memory.size(), &handle), comm, "registering memory");
    return handle;
  }
#endif
  core::require(how == Registration::none, "registration is requested only without a registration_obstacle()");
  return nullptr;
}

void nccl::deregister([[maybe_unused]] ncclComm_t comm, [[maybe_unused]] void* handle,
                      [[maybe_unused]] Registration how) noexcept {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  wait_for_kernels();
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (how == Registration::symmetric)
    static_cast<void>(ncclCommWindowDeregister(comm, static_cast<ncclWindow_t>(handle)));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  if (how == Registration::local) static_cast<void>(ncclCommDeregister(comm, handle));
#endif
}

}  // namespace lockstep::comm
