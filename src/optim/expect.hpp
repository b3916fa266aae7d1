// The message for a value of a recipe that is out of its range.
// Invariant: names the key, its value and its range.
// Used by the checks of OptimizerSpec and ScheduleSpec.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace lockstep::optim {

[[noreturn]] void fail_value(std::string_view key, const std::string& value, std::string_view expected);

/// Throws core::Error (usage) unless `holds`.
template <class Value>
void expect(bool holds, std::string_view key, const Value& value, std::string_view expected) {
  if (!holds) fail_value(key, fmt::format("{}", value), expected);
}

}  // namespace lockstep::optim
