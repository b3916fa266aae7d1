// The message for a value of a recipe that is out of its range.
// Invariant: names the key, its value and its range.
// Used by the checks of OptimizerSpec and ScheduleSpec.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "core/error.hpp"

namespace lockstep::optim {

/// Throws core::Error (usage) unless `holds`.
template <class Value>
void expect(bool holds, std::string_view key, const Value& value, std::string_view expected) {
  if (!holds)
    core::fail_usage(
        {.what = fmt::format("{} is {}", key, value), .where = std::string(key), .expected = std::string(expected)});
}

}  // namespace lockstep::optim
