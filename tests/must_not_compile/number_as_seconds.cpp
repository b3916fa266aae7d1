// refused: double.* to .*Seconds
#include "core/units.hpp"

using namespace lockstep::core;

#ifdef MISTAKE
std::string shown(double milliseconds) { return format_seconds(milliseconds); }
#else
std::string shown(double milliseconds) { return format_seconds({milliseconds * 1e-3}); }
#endif
