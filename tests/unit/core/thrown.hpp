// The Error that an expression throws, so that a test can examine it.
// Invariant: no Error is a test failure; any other exception passes through.
// Used by the unit tests.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "core/error.hpp"

namespace lockstep::core {

template <class F>
std::optional<Error> thrown_by(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no Error was thrown";
  return std::nullopt;
}

}  // namespace lockstep::core
