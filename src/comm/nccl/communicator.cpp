// Every row has its own communicator: NCCL reads from the environment what to use while it makes one.
//
// Memory to be registered comes from ncclMemAlloc, so that other GPUs and switches can map it. NCCL returns a null
// handle for what it cannot do: windows need GPUs that all reach one another, and environment variables disable each
// kind.
#include "comm/nccl/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "comm/registry.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

// Windows exist since 2.27, but some of their results were wrong before 2.28.7.
constexpr int oldest_for(Registration how) {
  return how == Registration::symmetric ? NCCL_VERSION(2, 28, 7) : NCCL_VERSION(2, 19, 0);
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
// cudaFree waits by itself for kernels that use the memory.
void wait_for_kernels() noexcept { static_cast<void>(cudaDeviceSynchronize()); }

void free_memory(std::byte* data) noexcept {
  wait_for_kernels();
  static_cast<void>(ncclMemFree(data));
}
#endif

}  // namespace

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
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

namespace nccl {
namespace {

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
  check_connected(first.result, "making an identifier");
  return first.id;
}

// Collective: true if `is_so` on all ranks.
bool is_so_for_all(Transport& transport, bool is_so) {
  std::byte answer{is_so};
  combine(transport, ReduceOp::min, {&answer, 1});
  return answer != std::byte{0};
}

/// Collective for Registration::symmetric. Null if NCCL does not support it on this machine.
void* register_with([[maybe_unused]] ncclComm_t comm, [[maybe_unused]] runtime::DeviceSpan<std::byte> memory,
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

/// Local. `handle`: the result of register_with() with the same `how`.
void deregister([[maybe_unused]] ncclComm_t comm, [[maybe_unused]] void* handle,
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

/// Memory is deregistered while the communicator still exists.
class NcclRegistered final : public Registered {
 public:
  NcclRegistered(Link& comm, runtime::DeviceSpan<std::byte> memory, Registration how)
      : comm_{comm}, how_{how}, handle_{register_with(comm.get(), memory, how)} {}
  // A communicator that has ended has no registered memory.
  ~NcclRegistered() override {
    if (comm_ && is_known()) deregister(comm_.get(), handle_, how_);
    if (!comm_) comm_.end();
  }
  NcclRegistered(const NcclRegistered&) = delete;
  NcclRegistered& operator=(const NcclRegistered&) = delete;

  [[nodiscard]] bool is_known() const noexcept { return handle_ != nullptr; }

 private:
  Link& comm_;
  Registration how_;
  void* handle_;
};

}  // namespace

Connection connect(Link& link, std::string_view row, Transport& transport) {
  require_nccl();
  const AsNamed as_named{row};
  Log& log = Log::only();
  const Variable level{"NCCL_DEBUG", log.level()}, subsystems{"NCCL_DEBUG_SUBSYS", log.subsystems()},
      file{"NCCL_DEBUG_FILE", log.path()};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t raw = nullptr;
  const ncclUniqueId id = agree_on_id(transport);
  check_connected(ncclCommInitRankConfig(&raw, transport.n_ranks(), id, transport.rank(), &config),
                  "connecting the GPUs");
  link.connect(raw);
  return read_connection(log.take());
}

ncclComm_t split(Link& whole, std::string_view row, const Transport& transport, const Transport& part) {
  const AsNamed as_named{row};
  ncclComm_t raw = nullptr;
  const int first = transport.rank() - part.rank();
  whole.check(ncclCommSplit(whole.get(), first, transport.rank(), &raw, nullptr), "connecting some of the GPUs");
  return raw;
}

std::unique_ptr<Registered> register_memory(Link& link, Transport& transport, runtime::DeviceSpan<std::byte> memory,
                                            Registration how) {
  auto registered = std::make_unique<NcclRegistered>(link, memory, how);
  if (!is_so_for_all(transport, registered->is_known())) return nullptr;
  return registered;
}

}  // namespace nccl
}  // namespace lockstep::comm
