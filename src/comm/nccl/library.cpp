#include "comm/nccl/library.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "comm/device_plan.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

constexpr int oldest = NCCL_VERSION(2, 18, 0);
static_assert(NCCL_VERSION_CODE >= oldest, "NCCL 2.18 or newer");

// "system error: no network interface was found".
std::string describe(ncclResult_t result, ncclComm_t comm) {
  const char* const last = ncclGetLastError(comm);
  const std::string details = last != nullptr && *last != '\0' ? fmt::format(": {}", last) : std::string{};
  return ncclGetErrorString(result) + details;
}

std::string_view how_to_know_more(ncclResult_t result) {
  return result == ncclInvalidUsage || result == ncclInvalidArgument
             ? "NCCL_DEBUG=WARN shows the reason"
             : "NCCL_DEBUG=INFO shows which network and GPUs it uses; NCCL_SOCKET_IFNAME selects another network";
}

}  // namespace

void nccl::check(ncclResult_t result, ncclComm_t comm, std::string_view what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  core::fail_system(
      fmt::format("NCCL {}, {}: {}; {}", nccl_version(), what, describe(result, comm), how_to_know_more(result)));
}

void nccl::check_connected(ncclResult_t result, std::string_view what) {
  if (result == ncclSuccess) return;
  core::fail_usage({.what = fmt::format("NCCL {}, {}: {}", nccl_version(), what, describe(result, nullptr)),
                    .where = "--device cuda",
                    .expected = "an NCCL that connects the GPUs of all ranks",
                    .fix = fmt::format("{}; or --device host", how_to_know_more(result))});
}

void require_nccl() {
  int version = 0;
  if (ncclGetVersion(&version) == ncclSuccess && version >= oldest) return;
  core::fail_usage({.what = fmt::format("NCCL {} is too old", nccl_version()),
                    .where = "libnccl.so.2",
                    .expected = fmt::format("NCCL {} or newer", nccl::to_text(oldest)),
                    .fix = fmt::format("load a newer one (on a cluster: module load nccl), or add its folder to "
                                       "LD_LIBRARY_PATH; this program was built with {}; or --device host",
                                       nccl::to_text(NCCL_VERSION_CODE))});
}

std::string nccl::to_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "of unknown version";
  return nccl::to_text(version);
}

namespace nccl {

Connection read_connection(std::string_view log) {
  constexpr std::string_view before_network = "Using network ", after_channels = " coll channels";
  Connection connection;
  if (const std::size_t at = log.rfind(before_network); at != std::string_view::npos) {
    const std::string_view rest = log.substr(at + before_network.size());
    connection.network = rest.substr(0, rest.find_first_of("\r\n"));
  }
  if (const std::size_t end = log.rfind(after_channels); end != std::string_view::npos) {
    const std::size_t space = log.substr(0, end).find_last_not_of("0123456789");
    const std::size_t begin = space == std::string_view::npos ? 0 : space + 1;
    std::from_chars(log.data() + begin, log.data() + end, connection.n_channels);
  }
  return connection;
}

Log& Log::only() {
  static Log log;
  return log;
}

Log::Log() {
  if (std::getenv("NCCL_DEBUG") == nullptr) file_ = core::Descriptor{memfd_create("log of NCCL", MFD_CLOEXEC)};
}

std::string Log::path() const { return file_ ? fmt::format("/proc/self/fd/{}", file_.get()) : ""; }

std::string Log::take() {
  std::string text;
  if (!file_) return text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = pread(file_.get(), part.data(), part.size(), static_cast<off_t>(n_taken_))) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(n));
    n_taken_ += static_cast<std::size_t>(n);
  }
  return text;
}

}  // namespace nccl
}  // namespace lockstep::comm
