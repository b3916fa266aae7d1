#include "core/version.hpp"

namespace lockstep::core {

std::string_view version() noexcept { return LOCKSTEP_VERSION; }
std::string_view compiler() noexcept { return LOCKSTEP_COMPILER; }
std::string_view build_type() noexcept { return LOCKSTEP_BUILD_TYPE; }

bool is_debug_build() noexcept {
#if defined(NDEBUG) && defined(__OPTIMIZE__)
  return false;
#else
  return true;
#endif
}

}  // namespace lockstep::core
