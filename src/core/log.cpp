#include "core/log.hpp"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

namespace lockstep::core {
namespace {

spdlog::logger* make_logger() {
  auto* logger = new spdlog::logger{"lockstep", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  logger->set_pattern("%l: %v");
  return logger;
}

// The process has one stderr, hence one logger. It is never destroyed: threads may still speak while the process ends.
spdlog::logger& logger() {
  static spdlog::logger& instance = *make_logger();
  return instance;
}

spdlog::string_view_t view(std::string_view message) { return {message.data(), message.size()}; }

}  // namespace

void set_log_identity(int rank, const std::string& host) {
  if (rank == 0) return;
  logger().set_pattern(fmt::format("[rank {} on {}] %l: %v", rank, host));
  logger().set_level(spdlog::level::warn);
}

void log_info(std::string_view message) { logger().log(spdlog::level::info, view(message)); }
void log_warning(std::string_view message) { logger().log(spdlog::level::warn, view(message)); }
void log_error(std::string_view message) { logger().log(spdlog::level::err, view(message)); }

}  // namespace lockstep::core
