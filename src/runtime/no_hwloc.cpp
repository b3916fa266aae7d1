#include "runtime/processors.hpp"

namespace lockstep::runtime {

std::vector<Processor> read_processors() { return {}; }

}  // namespace lockstep::runtime
