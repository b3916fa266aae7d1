// refused: Bytes.* to .*size_t
#include "comm/collective.hpp"

#ifdef MISTAKE
std::size_t n_elements(const lockstep::comm::Call& call) { return call.bytes(); }
#else
std::size_t n_elements(const lockstep::comm::Call& call) { return call.bytes().value / call.element_size(); }
#endif
