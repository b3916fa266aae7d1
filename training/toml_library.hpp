// toml++, in one way for all that read TOML.
// Invariant: an assertion of the library that a text breaks ("a = [[2], }") is a BrokenAssertion in any build.
// Used by the readers of recipes and of sites; nothing else knows toml++.
#pragma once

namespace lockstep::training {

struct BrokenAssertion {};
[[noreturn]] inline void fail_assertion() { throw BrokenAssertion{}; }

}  // namespace lockstep::training

// Header-only, as the library's build has its own.
#undef NDEBUG
#define TOML_ASSERT(expression) ((expression) ? void() : ::lockstep::training::fail_assertion())
#include <toml++/toml.h>
