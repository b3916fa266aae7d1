#include "core/instruction_sets.hpp"

namespace lockstep::core {

InstructionSets instruction_sets() noexcept { return {}; }

}  // namespace lockstep::core
