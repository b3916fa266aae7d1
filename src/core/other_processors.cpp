// What processors other than x86 have: no instructions that are chosen at run time.
#include "core/crc32c_paths.hpp"
#include "core/instruction_sets.hpp"

namespace lockstep::core {

Crc32cPath crc32c_by_instructions() noexcept { return nullptr; }
Crc32cPath crc32c_by_wide_instructions() noexcept { return nullptr; }

InstructionSets processor_sets() noexcept { return {}; }

}  // namespace lockstep::core
