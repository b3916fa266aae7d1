#include "core/log.hpp"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <string>

#include "core/printable.hpp"

namespace lockstep::core {
namespace {

spdlog::logger* make_logger() {
  auto* logger = new spdlog::logger{"lockstep", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  logger->set_pattern("%l: %v");
  return logger;
}

// The process has one stderr, hence one logger. It is never destroyed, because threads may still log while the process
// ends.
spdlog::logger& logger() {
  static spdlog::logger& instance = *make_logger();
  return instance;
}

void log(spdlog::level::level_enum level, std::string_view message) {
  const std::string shown = printable(message, "\n");
  logger().log(level, spdlog::string_view_t{shown.data(), shown.size()});
}

}  // namespace

void set_log_identity(int rank, const std::string& host) {
  if (rank == 0) return;
  logger().set_pattern(fmt::format("[rank {} on {}] %l: %v", rank, host));
  logger().set_level(spdlog::level::warn);
}

void log_info(std::string_view message) { log(spdlog::level::info, message); }
void log_warning(std::string_view message) { log(spdlog::level::warn, message); }
void log_error(std::string_view message) { log(spdlog::level::err, message); }

}  // namespace lockstep::core
