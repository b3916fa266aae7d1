#include "optim/expect.hpp"

#include "core/error.hpp"

namespace lockstep::optim {

void fail_value(std::string_view key, const std::string& value, std::string_view expected) {
  core::fail_usage(
      {.what = fmt::format("{} is {}", key, value), .where = std::string(key), .expected = std::string(expected)});
}

}  // namespace lockstep::optim
