#include "comm/algorithms/nccl_log.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

namespace lockstep::comm::nccl {

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

}  // namespace lockstep::comm::nccl
