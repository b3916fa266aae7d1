#include "training/train/time_limit.hpp"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <system_error>

namespace lockstep::training {

std::optional<core::Seconds> time_left_of_job() {
  const char* const variable = std::getenv("SLURM_JOB_END_TIME");
  if (variable == nullptr) return std::nullopt;
  const std::string_view text{variable};
  std::int64_t end = 0;
  const auto [last, status] = std::from_chars(text.data(), text.data() + text.size(), end);
  const std::int64_t left = end - std::time(nullptr);
  if (status != std::errc{} || last != text.data() + text.size() || end <= 0 || left <= 0) return std::nullopt;
  return core::Seconds{static_cast<double>(left)};
}

}  // namespace lockstep::training
