// toml++, configured once for all code that reads TOML.
// Invariant: a text that breaks an assertion of the library ("a = [[2], }") gives a BrokenAssertion in any build.
// Used by the readers of recipes and of sites; no other code uses toml++.
#pragma once

namespace lockstep::training {

struct BrokenAssertion {};
[[noreturn]] inline void fail_assertion() { throw BrokenAssertion{}; }

}  // namespace lockstep::training

// Header-only, because the library's own build has other settings.
#undef NDEBUG
#define TOML_ASSERT(expression) ((expression) ? void() : ::lockstep::training::fail_assertion())
#include <toml++/toml.h>
