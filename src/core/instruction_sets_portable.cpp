#include "core/instruction_sets.hpp"

namespace lockstep::core {

InstructionSets processor_sets() noexcept { return {}; }

}  // namespace lockstep::core
