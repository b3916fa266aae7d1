#include "core/crc32c_paths.hpp"

namespace lockstep::core {

Crc32cPath crc32c_by_instructions() noexcept { return nullptr; }
Crc32cPath crc32c_by_wide_instructions() noexcept { return nullptr; }

}  // namespace lockstep::core
