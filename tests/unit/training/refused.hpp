// The message of a refusal.
// Invariant: fails the test if there is no refusal.
// Used by the tests of training/.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"

namespace lockstep::training {

/// what() of the core::Error (usage) that `action` throws.
template <class Action>
std::string refused(Action action) {
  try {
    action();
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ExitCode::usage);
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

}  // namespace lockstep::training
